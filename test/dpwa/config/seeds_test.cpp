#include "dpwa/config/seeds.h"

#include <doctest/doctest.h>

#include "dpwa/config/config.h"
#include "dpwa/config/resolve.h"
#include "test/dpwa/cli/run_cli.h"
#include "test/dpwa/config/scratch_file.h"

namespace dpwa {
namespace {

using test::ScopedVariable;
using test::ScratchFile;

std::string problem_of(const ScratchFile& file, const std::string& name = "a") {
  try {
    load_config(file.path(), name);
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    const std::string path = file.path().string();
    return text.starts_with(path) ? text.substr(path.size()) : text;
  }
  return "";
}

}  // namespace

TEST_CASE("a file with seeds needs no nodes: the process is a node under its own name") {
  const ScratchFile file("seeds: [localhost, 127.0.0.1:7001, '[::1]', '::1', '[::1]:7002']\n");
  const ScopedVariable port("DPWA_PORT", "7009");
  const Config config = load_config(file.path(), "a");
  CHECK(config::texts_of(config.seeds) == std::vector<std::string>{"localhost:24000",
                                                                   "127.0.0.1:7001", "[::1]:24000",
                                                                   "[::1]:24000", "[::1]:7002"});
  REQUIRE(config.nodes.size() == 1);
  CHECK(config.by_seeds);
  CHECK_FALSE(config.is_joiner());
  CHECK(config.self_node().name == "a");
  CHECK(config.self_node().port == 7009);
  CHECK(config.self_node().addresses == std::vector<std::string>{"127.0.0.1"});
  CHECK(to_yaml(config).find("seeds: [localhost:24000, ") != std::string::npos);
}

TEST_CASE("without a name and a port it has those of its host and of seeds") {
  const ScratchFile file("seeds: [localhost]\n");
  const Config config = load_config(file.path());
  CHECK_FALSE(config.self.empty());
  CHECK(config.self_node().port == config::seed_port);
  CHECK(problem_of(file, "../a").starts_with(": --name: '../a' is not a name; accepted: 1 to 64"));
  const ScopedVariable name("DPWA_NAME", "a b");
  CHECK(problem_of(file, "").starts_with("environment: DPWA_NAME: 'a b' is not a name; accepted"));
}

TEST_CASE("beyond loopback a file with seeds needs security") {
  const ScratchFile file("seeds: [localhost]\n");
  {
    const ScopedVariable host("DPWA_HOST", "10.0.0.2");
    CHECK(problem_of(file).starts_with("environment: DPWA_HOST: '10.0.0.2' listens beyond loop"));
  }
  // Its own address, where it has one that others reach.
  const auto known =
      load_config(ScratchFile("seeds: [10.0.0.1]\nsecurity: {mode: insecure}\n").path(), "a");
  const std::string own = known.self_node().bind_address;
  if (config::is_loopback(own)) return;
  CHECK(problem_of(ScratchFile("seeds: [10.0.0.1]\n"))
            .starts_with(": security: '" + own + "' listens beyond loopback without a security"));
}

TEST_CASE("beside a list of nodes seeds change nothing for those that it names") {
  const ScratchFile file("nodes: [{name: a, port: 7001}]\nseeds: [localhost]\n");
  const Config config = load_config(file.path(), "a");
  CHECK_FALSE(config.by_seeds);
  CHECK(config.join.empty());
}

TEST_CASE("wrong seeds are one line") {
  for (const char* seed : {"''", "24000", "'a b'", "'a:0'", "'a:70000'", "'[]'", "':7'",
                           "'http://x:1'", "'10.0.0.1:7:1'"}) {
    CAPTURE(seed);
    const std::string said = problem_of(ScratchFile("seeds: [" + std::string(seed) + "]\n"));
    CHECK(said.find(":1: seeds[0]: ") != std::string::npos);
    CHECK(said.find("accepted: HOST or HOST:PORT, such as ") != std::string::npos);
  }
  CHECK(problem_of(ScratchFile("seeds: []\n")).find("an empty list; accepted: at least one HOST") !=
        std::string::npos);
  CHECK(problem_of(ScratchFile("seeds: [localhost]\nbackend: collective\n"))
            .ends_with("seeds: nodes without a list are for backend gossip; accepted: nodes"));
  CHECK(problem_of(ScratchFile("seeds: [localhost]\ngossip: {membership: {join: closed}}\n"))
            .ends_with("'closed' refuses the nodes that the seeds bring together; accepted: open"));
}

TEST_CASE("a seed that nobody knows yet is no error") {
  const ScratchFile file("seeds: [nobody.invalid]\nsecurity: {mode: insecure}\n");
  CHECK(load_config(file.path(), "a").join.at(0).addresses.empty());
}

TEST_CASE("status asks the seeds, and says that none answers") {
  const ScratchFile file("seeds: ['127.0.0.1:1']\n");
  const auto result = test::run_cli({"status", file.path().string(), "--check"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("127.0.0.1:1") != std::string::npos);
}

}  // namespace dpwa
