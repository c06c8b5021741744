#include <doctest/doctest.h>
#include <signal.h>

#include <fstream>
#include <map>

#include "test/process/cluster_run.h"

namespace dpwa {
namespace {

using test::ChildProcess;
using test::ClusterRun;
using test::holds_in_time;

constexpr const char* settings =
    "gossip: {daemon: true, timeout_ms: 500, start_wait_ms: 60s, finish_wait_ms: 30s}";

// The node process of each node of a run; killed at the end, if they still run.
class NodeProcesses {
 public:
  explicit NodeProcesses(const ClusterRun& run) : run_(run) {
    for (const auto& name : run.names()) start(name);
  }
  void start(const std::string& name) {
    const auto log = run_.directory() / (name + ".node.log");
    processes_.insert_or_assign(
        name, ChildProcess({DPWA_CLI, "node", "--config", run_.file(), "--name", name}, log));
  }
  ChildProcess& of(const std::string& name) { return processes_.at(name); }
  std::string log(const std::string& name) const {
    return test::read_text(run_.directory() / (name + ".node.log"));
  }

 private:
  const ClusterRun& run_;
  std::map<std::string, ChildProcess> processes_;
};

// Of w1; empty: it does not answer.
std::string state_of(const ClusterRun& run) {
  const auto status = run.status("w1");
  return status.is_object() ? status.value("state", "") : "";
}

bool mixes_with(const ClusterRun& run, const std::string& name, const std::string& peer) {
  const std::size_t from = run.steps(name).size();
  return holds_in_time([&] { return run.count(name, from, "mixed", peer) > 3; });
}

}  // namespace

TEST_CASE("trainers attached to node processes average as trainers do that are nodes themselves") {
  ClusterRun run(3, settings);
  NodeProcesses nodes(run);
  run.start_all({"--step-ms", "4"});
  CHECK(mixes_with(run, "w1", "w2"));
  CHECK(mixes_with(run, "w2", "w3"));
  CHECK(mixes_with(run, "w3", "w1"));
  CHECK(holds_in_time([&] { return run.last_line("w1")["step"] > 300; }));
  REQUIRE(run.finishes_well());
  for (const auto& name : run.names()) {
    CAPTURE(name);
    CHECK(run.last_line(name)["participants"] == 3);
    CHECK(run.last_line(name)["checksum"] == run.last_line("w1")["checksum"]);
    CHECK(run.last_line(name)["error"] < 0.05);
    nodes.of(name).signal(SIGTERM);
    CHECK(nodes.of(name).wait(test::run_patience) == 128 + SIGTERM);
  }
}

TEST_CASE("a node process without a trainer takes its file from a pipe and answers dpwa status") {
  ClusterRun run(1, settings);
  ChildProcess node({"/bin/bash", "-c", "exec \"$0\" node --config <(cat \"$1\") --name w1",
                     DPWA_CLI, run.file()},
                    run.directory() / "w1.node.log");
  CHECK(holds_in_time([&] { return state_of(run) == "waiting"; }));
  run.start("w1", {"--step-ms", "1"});
  CHECK(holds_in_time([&] { return state_of(run) == "training"; }));
  REQUIRE(run.finishes_well());
  CHECK(holds_in_time([&] { return state_of(run) == "waiting"; }));

  // status --watch goes on until Ctrl-C.
  const auto output = run.directory() / "watch.out";
  ChildProcess watch({DPWA_CLI, "status", "--watch=1", run.file()}, output);
  REQUIRE(holds_in_time([&] { return test::count_of(test::read_text(output), "waiting") > 1; }));
  watch.signal(SIGINT);
  CHECK(watch.wait(test::run_patience) == 128 + SIGINT);
  CHECK_FALSE(test::has(test::read_text(output), "\x1b"));  // no terminal
  node.signal(SIGTERM);
  CHECK(node.wait(test::run_patience) == 128 + SIGTERM);
}

TEST_CASE("a node process that waits for others ends when it is told to") {
  ClusterRun run(2, settings);
  NodeProcesses nodes(run);
  nodes.of("w2").signal(SIGKILL);
  CHECK(nodes.of("w2").wait(test::run_patience) == -SIGKILL);
  run.start("w1");
  REQUIRE(holds_in_time([&] { return test::has(nodes.log("w1"), "waiting for 'w2'"); }));
  nodes.of("w1").signal(SIGTERM);
  CHECK(nodes.of("w1").wait(test::run_patience) == 128 + SIGTERM);
  CHECK(run.wait("w1") == 1);
}

TEST_CASE("a trainer dies: its node serves the last snapshot, marked stale, until it is back") {
  ClusterRun run(2, settings);
  NodeProcesses nodes(run);
  run.start_all({"--step-ms", "4"});
  REQUIRE(mixes_with(run, "w2", "w1"));
  CHECK(run.status("w1")["state"] == "training");
  run.process("w1").signal(SIGKILL);
  REQUIRE(run.wait("w1") == -SIGKILL);
  CHECK(holds_in_time([&] { return run.status("w1")["state"] == "stale"; }));
  CHECK(holds_in_time([&] { return test::has(nodes.log("w1"), "is gone: serving its snapshot"); }));

  // Nobody else has the weights now: w2 begins anew, and takes them from the node whose trainer is
  // dead.
  run.process("w2").signal(SIGKILL);
  nodes.of("w2").signal(SIGKILL);
  REQUIRE(run.wait("w2") == -SIGKILL);
  REQUIRE(nodes.of("w2").wait(test::run_patience) == -SIGKILL);
  nodes.start("w2");
  run.start("w2", {"--step-ms", "4"});
  REQUIRE(
      holds_in_time([&] { return test::has(nodes.log("w2"), "took over the weights of 'w1'"); }));

  run.start("w1", {"--step-ms", "4"});
  CHECK(mixes_with(run, "w1", "w2"));
  CHECK(mixes_with(run, "w2", "w1"));
  CHECK(run.status("w1")["state"] == "training");
  REQUIRE(run.finishes_well());
  CHECK(run.last_line("w1")["participants"] == 2);
  CHECK(run.last_line("w1")["checksum"] == run.last_line("w2")["checksum"]);
}

TEST_CASE("a second trainer of a node is refused, and the first one ends with its node process") {
  ClusterRun run(2, settings);
  NodeProcesses nodes(run);
  run.start_all({"--step-ms", "4"});
  REQUIRE(mixes_with(run, "w1", "w2"));
  ChildProcess second({DPWA_VECTOR_TRAINER, run.file(), "w1", run.directory() / "second.jsonl"},
                      run.directory() / "second.log");
  CHECK(second.wait(test::run_patience) == 1);
  CHECK(test::has(run.log("second"),
                  "node 'w1' has a trainer: process " + std::to_string(run.process("w1").id())));
  ChildProcess node({DPWA_CLI, "node", "--config", run.file(), "--name", "w1"},
                    run.directory() / "second.log");
  CHECK(node.wait(test::run_patience) == 1);
  CHECK(mixes_with(run, "w1", "w2"));

  // The end of the first one's node process is the end of that trainer alone.
  nodes.of("w1").signal(SIGKILL);
  CHECK(run.wait("w1") == 1);
  CHECK(test::has(run.log("w1"), "the node process of 'w1' (dpwa node) has ended"));
  const std::size_t from = run.steps("w2").size();
  CHECK(holds_in_time([&] { return run.steps("w2").size() > from + 50; }));
  nodes.start("w1");
  run.start("w1", {"--step-ms", "4"});
  CHECK(mixes_with(run, "w1", "w2"));
  CHECK(run.finishes_well());
}

TEST_CASE("SIGHUP with a log.file that cannot be opened ends no node process") {
  ClusterRun run(1, settings);
  NodeProcesses nodes(run);
  const auto refusals = [&] {
    return test::count_of(nodes.log("w1"),
                          "not reloaded: " + run.file().string() + ":4: log.file: ");
  };
  REQUIRE(holds_in_time([&] { return !nodes.log("w1").empty(); }));
  std::filesystem::copy(run.file(), run.directory() / "sound.yaml");
  std::ofstream(run.file(), std::ios::app) << "log: {file: /dev/null/w1.log}\n";
  nodes.of("w1").signal(SIGHUP);  // before its trainer comes
  CHECK(holds_in_time([&] { return refusals() == 1; }));
  std::filesystem::copy(run.file(), run.directory() / "wrong.yaml");
  std::filesystem::rename(run.directory() / "sound.yaml", run.file());
  run.start("w1", {"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.steps("w1").size() > 5; }));
  std::filesystem::rename(run.directory() / "wrong.yaml", run.file());
  nodes.of("w1").signal(SIGHUP);  // while it trains
  CHECK(holds_in_time([&] { return refusals() == 2; }));
  const std::size_t from = run.steps("w1").size();
  CHECK(holds_in_time([&] { return run.steps("w1").size() > from + 50; }));
  CHECK(run.finishes_well());
}

TEST_CASE("a trainer that finds no node process says how to start it") {
  ClusterRun run(1, "gossip: {daemon: true, start_wait_ms: 100}");
  run.start("w1");
  CHECK(run.wait("w1") == 1);
  CHECK(test::has(run.log("w1"),
                  "start it: dpwa node --config " + run.file().string() + " --name w1"));
}

}  // namespace dpwa
