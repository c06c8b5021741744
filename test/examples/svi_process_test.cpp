#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpwa/net/free_ports.h"
#include "test/support/child_process.h"
#include "test/support/temporary_directory.h"

// dpwa-svi as processes.
namespace dpwa {
namespace {

using nlohmann::json;
using test::has;

struct Svi {
  test::TemporaryDirectory dir;

  void write_cluster(std::size_t nodes, const std::string& settings) {
    std::string text = "nodes:\n";
    const auto ports = net::free_ports(nodes);
    for (std::size_t i = 0; i < nodes; ++i)
      text +=
          "  - {name: w" + std::to_string(i + 1) + ", port: " + std::to_string(ports[i]) + "}\n";
    test::write_text(dir / "cluster.yaml", text + settings + "\n");
  }
  std::vector<std::string> command(const std::string& name,
                                   const std::vector<std::string>& more) const {
    std::vector<std::string> all{DPWA_SVI, "--config", dir / "cluster.yaml", "--name", name};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // One node to its end: the exit code. What it says is in output().
  int run(const std::vector<std::string>& more) const {
    return test::start_afresh(command("w1", more), dir / "output").wait().value_or(-1);
  }
  std::string output() const { return test::read_text(dir / "output"); }
  json result(const std::string& name) const {
    return json::parse(test::read_text(dir.path() / "run" / (name + ".result.json")));
  }
};

}  // namespace

TEST_CASE_FIXTURE(Svi, "dpwa-svi fits the synthetic curve, and its intervals are calibrated") {
  write_cluster(1, "backend: \"null\"");
  REQUIRE_MESSAGE(run({"--data", "synthetic", "--run-dir", dir / "run"}) == 0, output());
  const json found = result("w1");
  CHECK(found["rows"] == 240);
  CHECK(found["test_rows"] == 60);
  CHECK(found["final"]["rmse"] < 0.45);  // the noise alone: 0.25
  CHECK(found["final"]["log_likelihood"] > -0.6);
  CHECK(found["final"]["within_95"] > 0.85);
  CHECK(found["final"]["within_50"] < 0.75);
  CHECK(found["curve"]["x"].size() == found["curve"]["sd"].size());
  CHECK(found["final"] == found["own"]);
}

TEST_CASE_FIXTURE(Svi, "two nodes of dpwa-svi that gossip end with one posterior") {
  write_cluster(2, "gossip: {finish_wait_ms: 60s}");
  std::vector<test::ChildProcess> nodes;
  for (const char* const name : {"w1", "w2"})
    nodes.emplace_back(
        command(name, {"--data", "synthetic", "--run-dir", dir / "run", "--steps", "300"}),
        dir / name);
  for (auto& node : nodes) CHECK(node.wait() == 0);
  INFO(test::read_text(dir / "w1"));
  CHECK(result("w1")["final"] == result("w2")["final"]);
  CHECK(result("w1")["rows"] == 120);
  CHECK(result("w1")["participants"] == 2);
}

TEST_CASE_FIXTURE(Svi, "workers of dpwa-svi with models of other shapes say so in one line") {
  write_cluster(2, "gossip: {min_nodes: 2, start_wait_ms: 6s}\nlog: {level: error}");
  test::ChildProcess w1(command("w1", {"--data", "synthetic", "--hidden", "4"}), dir / "w1");
  test::ChildProcess w2(command("w2", {"--data", "synthetic", "--hidden", "8"}), dir / "w2");
  CHECK(w1.wait() == 1);
  CHECK(w2.wait() == 1);
  // The first to hear of the other's model ends; the other one may then find nobody.
  const std::string text = test::read_text(dir / "w1") + test::read_text(dir / "w2");
  CHECK(has(text, "tensor 0 'weights.mean' is "));
  CHECK(has(text, "float32[34] on 'w2'"));
  CHECK(has(text, "float32[18] on 'w1'"));
  CHECK(std::ranges::count(text, '\n') == 2);
}

TEST_CASE_FIXTURE(Svi, "dpwa-svi refuses bad data in one line that says what is wrong") {
  const auto refused = [&](const std::vector<std::string>& more) {
    CHECK(run(more) == 2);
    const std::string text = output();
    return text.substr(text.find("dpwa-svi: "));
  };
  write_cluster(1, "backend: \"null\"\nlog: {level: warn}");
  test::write_text(dir / "engel.csv", "income,foodexp\n1,2\n2,inf\n");
  CHECK(has(refused({"--data", "engel", "--data-dir", dir.path()}),
            "engel.csv:3: column 'foodexp': 'inf' is not accepted; accepted: a finite number\n"));
  write_cluster(6, "gossip: {}\nlog: {level: warn}");
  test::write_text(dir / "engel.csv", "income,foodexp\n1,2\n2,3\n3,4\n4,5\n5,6\n");
  CHECK(has(refused({"--data", "engel", "--data-dir", dir.path()}),
            "has 4 rows for 6 workers, so a worker would have none"));
}

}  // namespace dpwa
