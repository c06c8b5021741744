#include <doctest/doctest.h>
#include <yaml-cpp/yaml.h>

#include "dpwa/config/config.h"
#include "test/dpwa/cli/run_cli.h"
#include "test/dpwa/config/scratch_file.h"

namespace dpwa {
namespace {

using test::ScopedVariable;
using test::ScratchFile;

const Launcher no_launcher = [](Config&) {};

void two_nodes(Config& config) {
  for (const char* name : {"rank0", "rank1"}) {
    NodeEntry node;
    node.name = name;
    node.port = static_cast<std::uint16_t>(20000 + config.nodes.size());
    config.nodes.push_back(node);
  }
  config.self = "rank1";
}

void never(Config&) {
  FAIL("the launcher was asked though a name was given");
}

}  // namespace

TEST_CASE("a launcher gives nodes and name to a file without nodes") {
  const ScratchFile file("backend: collective\n");
  const Config config = load_config(file.path(), "", {}, two_nodes);
  CHECK(config.backend == Backend::collective);
  CHECK(config.nodes.size() == 2);
  CHECK(config.self_index() == 1);
  CHECK(config.self_node().addresses == std::vector<std::string>{"127.0.0.1"});
  CHECK(reload_config(file.path(), "", {}, two_nodes).self == "rank1");
}

TEST_CASE("with a name the file alone counts") {
  const ScratchFile file("nodes: [{name: a, port: 1}]\n");
  CHECK(load_config(file.path(), "a", {}, never).self == "a");
  const ScopedVariable name("DPWA_NAME", "a");
  CHECK(load_config(file.path(), "", {}, never).self == "a");
}

TEST_CASE("a file without nodes needs a launcher, and no name") {
  const ScratchFile file("backend: gossip\n");
  const std::string missing = file.path().string() + ": nodes: missing; accepted: a list of ";
  const auto starts_so = [&missing](auto load) {
    try {
      load();
    } catch (const ConfigError& error) {
      return std::string(error.what()).starts_with(missing);
    }
    return false;
  };
  CHECK(starts_so([&] { load_config(file.path(), "", {}, no_launcher); }));
  CHECK(starts_so([&] { load_config(file.path(), "a", {}, never); }));
  CHECK(starts_so([&] { load_config(file.path(), "a"); }));
  CHECK(starts_so([&] { load_cluster(file.path()); }));
  CHECK(load_launchable(file.path()).nodes.empty());
}

TEST_CASE("what the file says of all nodes is checked once the launcher has given them") {
  const ScratchFile file("gossip: {min_nodes: 3, membership: {join: closed}}\n");
  CHECK(load_launchable(file.path()).gossip.min_nodes == 3);
  CHECK_THROWS_AS(load_config(file.path(), "", {}, two_nodes), ConfigError);
}

TEST_CASE("DPWA_PORT belongs to the meeting where the launcher gives the nodes") {
  const ScratchFile file("backend: gossip\n");
  const ScopedVariable port("DPWA_PORT", "7001");
  const ScopedVariable level("DPWA_LOG_LEVEL", "debug");
  const Config config = load_config(file.path(), "", {}, two_nodes);
  CHECK(config.self_node().port == 20001);
  CHECK(config.log.level == "debug");
}

TEST_CASE("the manifests for Kubernetes hold a cluster file that loads, and count their pods") {
  const std::string folder = DPWA_SOURCE_DIR "/samples/kubernetes/";
  int pods = 0, files = 0;
  for (const std::string name : {"network.yaml", "job.yaml", "statefulset.yaml"}) {
    for (const YAML::Node& object : YAML::LoadAllFromFile(folder + name)) {
      if (object["kind"].as<std::string>() == "ConfigMap") {
        const ScratchFile file(object["data"]["cluster.yaml"].as<std::string>());
        CHECK(load_launchable(file.path()).nodes.empty());
        ++files;
      }
      const YAML::Node spec = object["spec"];
      if (!spec || !spec["template"]) continue;
      const auto count = spec[name == "job.yaml" ? "completions" : "replicas"].as<std::string>();
      const YAML::Node variable = spec["template"]["spec"]["containers"][0]["env"][0];
      CHECK(variable["name"].as<std::string>() == "WORLD_SIZE");
      CHECK(variable["value"].as<std::string>() == count);
      ++pods;
    }
  }
  CHECK(pods == 2);
  CHECK(files == 1);
}

TEST_CASE("config check says that the launcher gives the nodes, and prints what it can") {
  const ScratchFile file("cluster: mine\n");
  const auto result = test::run_cli({"config", "check", file.path().string()});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "ok: " + file.path().string() +
                          ": cluster mine, nodes come from the launcher (torchrun, srun, mpirun, "
                          "Kubernetes)\n");
  CHECK(result.out.find("\nnodes:") == std::string::npos);
  CHECK(test::run_cli({"status", file.path().string()}).exit_code == 2);
}

}  // namespace dpwa
