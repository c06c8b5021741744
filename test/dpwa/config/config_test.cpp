#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "test/dpwa/config/scratch_file.h"

using namespace dpwa;
using namespace dpwa::test;
using namespace std::chrono_literals;

namespace {

const std::filesystem::path samples = std::filesystem::path(DPWA_SOURCE_DIR) / "samples";

}  // namespace

// keys_test.cpp walks the other keys.
TEST_CASE("every key of a node reaches its field") {
  const ScratchFile file(R"(
nodes:
  - {name: w1, host: 127.0.0.1, port: 24000, cores: [0, 2]}
  - {name: w2, host: 10.0.0.2, bind: 0.0.0.0, port: 24001}
interpolation: {method: linear, start: 0.1, target: 100, divergence_threshold: 0.3}
security: {mode: insecure}
)");
  const Config config = load_cluster(file.path());
  CHECK(config.file == file.path());
  CHECK(config.self.empty());
  REQUIRE(config.nodes.size() == 2);
  CHECK(config.nodes[0].name == "w1");
  CHECK(config.nodes[0].port == 24000);
  CHECK(config.nodes[0].cores == std::vector<int>{0, 2});
  CHECK(config.nodes[0].addresses == std::vector<std::string>{"127.0.0.1"});
  CHECK(config.nodes[0].bind_host() == "127.0.0.1");
  CHECK(config.nodes[1].host == "10.0.0.2");
  CHECK(config.nodes[1].bind == "0.0.0.0");
  CHECK(config.nodes[1].bind_address == "0.0.0.0");
  CHECK(config.nodes[1].cores.empty());
  CHECK(config.interpolation.method == "linear");
  CHECK(config.interpolation.parameters ==
        InterpolationParameters{{"start", 0.1}, {"target", 100}});
  CHECK(config.interpolation.divergence_threshold == 0.3);
}

TEST_CASE("the original's name of the pull probability works inside gossip") {
  const ScratchFile file("nodes: [{name: a, port: 1}]\ngossip: {fetch_probability: 0.25}\n");
  const Config config = load_cluster(file.path());
  CHECK(config.gossip.pull_probability == 0.25);
  CHECK(config.gossip.blend == BlendMode::delta);
}

TEST_CASE("the null back end is written 'null', in quotes or not") {
  const std::string nodes = "nodes: [{name: w1, port: 24000}]\n";
  for (const char* null :
       {"null", "\"null\"", "'null'", "&mark null", "!!str null", "null # none"}) {
    CAPTURE(null);
    for (const char* end : {"\n", ""}) {
      const ScratchFile file(nodes + "backend: " + null + end);
      CHECK(load_cluster(file.path()).backend == Backend::null);
    }
  }
  CHECK(error_of("{nodes: [{name: w1, port: 24000}], backend: null}").empty());
  for (const char* other : {"~", "Null", "NULL"}) {
    CAPTURE(other);
    const std::string refusal = "backend: '" + std::string(other) + "' is unknown,";
    const std::string accepted = " accepted: " + available_backends();
    for (const std::string before : {"", "&mark "}) {
      const std::string error = error_of(nodes + "backend: " + before + other + "\n");
      CHECK(error.starts_with("2: " + refusal));
      CHECK(error.ends_with(accepted));
    }
    CHECK(error_of("{nodes: [{name: w1, port: 24000}], backend: " + std::string(other) + "}")
              .starts_with("1: " + refusal));
  }
  CHECK(error_of(nodes + "backend:\ncluster: a\n") ==
        "2: backend: no value; accepted: " + available_backends());
}

TEST_CASE("the own node is found by its name") {
  const ScratchFile file("nodes: [{name: a, port: 1}, {name: b, port: 2}]\n");
  const Config config = load_config(file.path(), "b");
  CHECK(config.self == "b");
  CHECK(config.self_index() == 1);
  CHECK(config.self_node().port == 2);
  CHECK_THROWS_AS(load_cluster(file.path()).self_index(), std::logic_error);
}

TEST_CASE("localhost resolves to loopback with IPv4 first and each address once") {
  const ScratchFile file("nodes: [{name: a, host: localhost, port: 1}]\n");
  const NodeEntry node = load_cluster(file.path()).nodes[0];
  REQUIRE_FALSE(node.addresses.empty());
  CHECK(node.addresses.front() == "127.0.0.1");
  CHECK(node.bind_address == "127.0.0.1");
}

TEST_CASE("every sample loads, as a whole and as each of its nodes") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(samples)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    ++count;
    const Config config = load_cluster(entry.path());
    for (const NodeEntry& node : config.nodes) {
      CHECK(load_config(entry.path(), node.name).self_node().port == node.port);
    }
  }
  CHECK(count >= 4);
}

TEST_CASE("the sample in the original's form keeps the original's meaning") {
  const Config config = load_cluster(samples / "original.yaml");
  REQUIRE(config.nodes.size() == 4);
  CHECK(config.nodes[3].name == "w4");
  CHECK(config.nodes[3].port == 45003);
  CHECK(std::all_of(config.nodes.begin(), config.nodes.end(),
                    [](const NodeEntry& node) { return node.cores.empty(); }));
  CHECK(config.gossip.blend == BlendMode::lerp);
  CHECK(config.gossip.timeout == Duration(std::chrono::milliseconds(2500)));
  CHECK(config.gossip.step_budget == config.gossip.timeout);
  CHECK(config.interpolation.parameters == InterpolationParameters{{"value", 0.5}});
}
