#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpwa/net/free_ports.h"
#include "test/support/child_process.h"
#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

// dpwa-svi as processes.
namespace dpwa {
namespace {

using nlohmann::json;
using test::has;

struct Svi {
  test::TemporaryDirectory dir;

  void write_cluster(std::size_t nodes, const std::string& settings) const {
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
  // Nodes w1, w2, ..., started together, each with what its place in `more` adds.
  using Nodes = std::vector<std::unique_ptr<test::ChildProcess>>;
  Nodes start(const std::vector<std::vector<std::string>>& more) const {
    Nodes nodes;
    for (std::size_t i = 0; i < more.size(); ++i) {
      const std::string name = "w" + std::to_string(i + 1);
      nodes.push_back(std::make_unique<test::ChildProcess>(
          test::start_afresh(command(name, more[i]), dir.path() / name)));
    }
    return nodes;
  }
  // What the nodes say in all, once they have ended with 1.
  std::string refused(const std::vector<std::vector<std::string>>& more) const {
    for (const auto& node : start(more)) CHECK(node->wait() == 1);
    std::string text;
    for (std::size_t i = 1; i <= more.size(); ++i)
      text += test::read_text(dir.path() / ("w" + std::to_string(i)));
    return text;
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
  write_cluster(2, "gossip: {finish_wait_ms: 60s, firewall: {distance: warn}}");
  std::vector<test::ChildProcess> nodes;
  for (const char* const name : {"w1", "w2"})
    nodes.emplace_back(command(name, {"--data", "synthetic", "--run-dir", dir / "run", "--steps",
                                      "300", "--posterior", "full"}),
                       dir / name);
  for (auto& node : nodes) CHECK(node.wait() == 0);
  INFO(test::read_text(dir / "w1"));
  CHECK(result("w1")["final"] == result("w2")["final"]);
  CHECK(result("w1")["rows"] == 120);
  CHECK(result("w1")["participants"] == 2);
}

TEST_CASE_FIXTURE(Svi, "nodes that gossip in another form refuse each other") {
  write_cluster(2, "gossip: {min_nodes: 2, start_wait_ms: 6s}\nlog: {level: error}");
  // The first to hear of the other's form ends; the other one may then find nobody.
  const std::string forms = refused({{"--data", "synthetic", "--exchange", "natural"},
                                     {"--data", "synthetic", "--exchange", "parameters"}});
  CHECK(has(forms, "what gossip averages: "));
  CHECK(has(forms, "natural parameters on 'w1'"));
  CHECK(has(forms, "(m, log s) on 'w2'"));
  CHECK(std::ranges::count(forms, '\n') == 2);
}

TEST_CASE_FIXTURE(Svi, "dpwa-svi says how far it is, and what its result lacks") {
  write_cluster(2, "gossip: {start_wait_ms: 300, finish_wait_ms: 300}");
  REQUIRE(run({"--data", "synthetic", "--steps", "100", "--batch-size", "1000"}) == 0);
  CHECK(has(output(), "--batch-size 1000 is more than the 120 rows of this node"));
  CHECK(has(output(), "step 1 of 100, loss "));
  CHECK(has(output(), "step 91 of 100, loss "));
  CHECK_FALSE(has(output(), "step 2 of 100"));
  CHECK(has(output(), "the final average is over 1 of 2 nodes: it lacks the rows of the others"));
}

TEST_CASE_FIXTURE(Svi, "minibatches and shares of the rows leave the posterior as wide as it is") {
  const auto width = [&](std::size_t nodes, std::vector<std::string> more) {
    write_cluster(nodes, nodes == 1 ? "backend: \"null\""
                                    : "backend: collective\ncollective: {start_wait_ms: 60s}");
    for (const char* const word :
         {"--data", "synthetic", "--hidden", "0", "--steps", "500", "--run-dir"})
      more.emplace_back(word);
    more.push_back(dir / "run");
    for (const auto& node : start(std::vector(nodes, more)))
      REQUIRE_MESSAGE(node->wait() == 0, test::read_text(dir / "w1"));
    const json found = result("w1");
    CHECK(found["workers"] == nodes);
    double sum = 0;
    for (const double sd : found["curve"]["model_sd"]) sum += sd;
    return sum;
  };
  const double one = width(1, {});
  REQUIRE(one > 0);
  // K forgotten: 1.4 times as wide; N / b forgotten: 2.8 times.
  CHECK(width(2, {"--batch-size", "30"}) == doctest::Approx(one).epsilon(0.2));
}

TEST_CASE_FIXTURE(Svi, "the others share the rows of a lost node of dpwa-svi") {
  write_cluster(3,
                "backend: collective\ngossip: {start_wait_ms: 2s, finish_wait_ms: 2s}\n"
                "collective: {start_wait_ms: 60s, on_lost_rank: shrink}");
  const std::vector<std::string> options = {"--data", "synthetic", "--steps",
                                            "1500",   "--run-dir", dir / "run"};
  const Nodes nodes = start({options, options, options});
  const auto trains = [&] { return has(test::read_text(dir / "w3"), " step 1 of "); };
  REQUIRE(test::eventually(trains, std::chrono::seconds(100)));
  nodes[2]->signal(SIGKILL);
  for (const std::size_t i : {0, 1}) {
    const std::string name = "w" + std::to_string(i + 1);
    const int code = nodes[i]->wait().value_or(-1);
    REQUIRE_MESSAGE(code == 0, test::read_text(dir / name));
    const json found = result(name);
    CHECK(found["workers"] == 2);
    CHECK(found["rows"] == 120);
  }
}

TEST_CASE_FIXTURE(Svi, "dpwa-svi refuses more nodes than rows, and a folder that it cannot have") {
  write_cluster(6, "gossip: {}\nlog: {level: warn}");
  test::write_text(dir / "engel.csv", "income,foodexp\n1,2\n2,3\n3,4\n4,5\n5,6\n");
  CHECK(run({"--data", "engel", "--data-dir", dir.path()}) == 2);
  CHECK(has(output(),
            "dpwa-svi: 4 of the 5 rows of engel are left to train, as a fifth is for testing: too "
            "few for 6 nodes; accepted: at least one row for each\n"));
  write_cluster(1, "backend: \"null\"\nlog: {level: warn}");
  test::write_text(dir / "file", "");
  CHECK(run({"--data", "synthetic", "--run-dir", dir / "file"}) == 2);
  CHECK(has(output(), "file: cannot be written"));
}

}  // namespace dpwa
