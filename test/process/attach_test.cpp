#include <doctest/doctest.h>
#include <signal.h>

#include <fstream>
#include <map>
#include <sstream>

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
    std::ostringstream text;
    text << std::ifstream(run_.directory() / (name + ".node.log")).rdbuf();
    return text.str();
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

TEST_CASE("a node process takes a cluster file that comes through a pipe") {
  ClusterRun run(1, settings);
  const auto log = run.directory() / "w1.node.log";
  ChildProcess node({"/bin/bash", "-c", "exec \"$0\" node --config <(cat \"$1\") --name w1",
                     DPWA_CLI, run.file()},
                    log);
  const auto text = [&] {
    std::ostringstream words;
    words << std::ifstream(log).rdbuf();
    return words.str();
  };
  CHECK(holds_in_time(
      [&] { return text().find("waiting for a trainer of 'w1'") != std::string::npos; }));
  INFO(text());
  node.signal(SIGTERM);
  CHECK(node.wait(test::run_patience) == 128 + SIGTERM);
}

TEST_CASE("a node process answers dpwa status before its trainer comes and after it has gone") {
  ClusterRun run(1, settings);
  NodeProcesses nodes(run);
  CHECK(holds_in_time([&] { return state_of(run) == "waiting"; }));
  run.start("w1", {"--step-ms", "1"});
  CHECK(holds_in_time([&] { return state_of(run) == "training"; }));
  REQUIRE(run.finishes_well());
  CHECK(holds_in_time([&] { return state_of(run) == "waiting"; }));
  nodes.of("w1").signal(SIGHUP);
  CHECK(holds_in_time([&] { return state_of(run) == "waiting"; }));
}

TEST_CASE("status --watch goes on until Ctrl-C and ends with 130") {
  const ClusterRun run(1, settings);
  const NodeProcesses nodes(run);
  const auto output = run.directory() / "watch.out";
  ChildProcess watch({DPWA_CLI, "status", "--watch=1", run.file()}, output);
  REQUIRE(holds_in_time([&] {
    std::ostringstream text;
    text << std::ifstream(output).rdbuf();
    const auto first = text.str().find("waiting");
    return first != std::string::npos && text.str().find("waiting", first + 1) != std::string::npos;
  }));
  watch.signal(SIGINT);
  CHECK(watch.wait(test::run_patience) == 128 + SIGINT);
  std::ostringstream text;
  text << std::ifstream(output).rdbuf();
  CHECK(text.str().find('\x1b') == std::string::npos);  // no terminal
}

TEST_CASE("a node process that waits for others ends when it is told to") {
  ClusterRun run(2, settings);
  NodeProcesses nodes(run);
  nodes.of("w2").signal(SIGKILL);
  CHECK(nodes.of("w2").wait(test::run_patience) == -SIGKILL);
  run.start("w1");
  REQUIRE(
      holds_in_time([&] { return nodes.log("w1").find("waiting for 'w2'") != std::string::npos; }));
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
  CHECK(holds_in_time(
      [&] { return nodes.log("w1").find("is gone: serving its snapshot") != std::string::npos; }));

  // Nobody else has the weights now: w2 begins anew, and takes them from the node whose trainer is
  // dead.
  run.process("w2").signal(SIGKILL);
  nodes.of("w2").signal(SIGKILL);
  REQUIRE(run.wait("w2") == -SIGKILL);
  REQUIRE(nodes.of("w2").wait(test::run_patience) == -SIGKILL);
  nodes.start("w2");
  run.start("w2", {"--step-ms", "4"});
  REQUIRE(holds_in_time(
      [&] { return nodes.log("w2").find("took over the weights of 'w1'") != std::string::npos; }));

  run.start("w1", {"--step-ms", "4"});
  CHECK(mixes_with(run, "w1", "w2"));
  CHECK(mixes_with(run, "w2", "w1"));
  CHECK(run.status("w1")["state"] == "training");
  REQUIRE(run.finishes_well());
  CHECK(run.last_line("w1")["participants"] == 2);
  CHECK(run.last_line("w1")["checksum"] == run.last_line("w2")["checksum"]);
}

TEST_CASE("a trainer that dies alone goes on from its node's last snapshot") {
  ClusterRun run(1, settings);
  NodeProcesses nodes(run);
  run.start("w1", {"--step-ms", "1"});
  REQUIRE(holds_in_time([&] { return run.steps("w1").size() > 200; }));
  run.process("w1").signal(SIGKILL);
  REQUIRE(run.wait("w1") == -SIGKILL);
  const double clock = run.steps("w1").back()["clock"];
  run.start("w1", {"--step-ms", "1"});
  REQUIRE(holds_in_time([&] {
    return run.lines("w1").back().contains("step") && run.steps("w1").back()["clock"] > clock + 9;
  }));
  run.finish();
  CHECK(run.wait("w1") == 0);
  CHECK(run.last_line("w1")["error"] < 0.2);
}

TEST_CASE("a second trainer of a node is refused while the first runs, and nothing happens to it") {
  ClusterRun run(2, settings);
  NodeProcesses nodes(run);
  run.start_all({"--step-ms", "4"});
  REQUIRE(mixes_with(run, "w1", "w2"));
  ChildProcess second({DPWA_VECTOR_TRAINER, run.file(), "w1", run.directory() / "second.jsonl"},
                      run.directory() / "second.log");
  CHECK(second.wait(test::run_patience) == 1);
  std::ostringstream said;
  said << std::ifstream(run.directory() / "second.log").rdbuf();
  CHECK(said.str().find("node 'w1' has a trainer: process " +
                        std::to_string(run.process("w1").id())) != std::string::npos);
  ChildProcess node({DPWA_CLI, "node", "--config", run.file(), "--name", "w1"},
                    run.directory() / "second.log");
  CHECK(node.wait(test::run_patience) == 1);
  CHECK(mixes_with(run, "w1", "w2"));
  CHECK(run.finishes_well());
}

TEST_CASE("SIGHUP with a log.file that cannot be opened ends no node process") {
  ClusterRun run(1, settings);
  NodeProcesses nodes(run);
  const auto spoil = [&] {
    std::ofstream(run.file(), std::ios::app) << "log: {file: /dev/null/w1.log}\n";
    nodes.of("w1").signal(SIGHUP);
  };
  const auto refused = [&] {
    return nodes.log("w1").find("not reloaded: " + run.file().string() + ":4: log.file: ") !=
           std::string::npos;
  };
  SUBCASE("before its trainer comes") {
    REQUIRE(holds_in_time([&] { return !nodes.log("w1").empty(); }));
    std::filesystem::copy(run.file(), run.directory() / "sound.yaml");
    spoil();
    CHECK(holds_in_time(refused));
    std::filesystem::rename(run.directory() / "sound.yaml", run.file());
    run.start("w1", {"--step-ms", "4"});
    CHECK(holds_in_time([&] { return run.steps("w1").size() > 5; }));
  }
  SUBCASE("while it trains") {
    run.start("w1", {"--step-ms", "4"});
    REQUIRE(holds_in_time([&] { return run.steps("w1").size() > 5; }));
    spoil();
    CHECK(holds_in_time(refused));
    const std::size_t from = run.steps("w1").size();
    CHECK(holds_in_time([&] { return run.steps("w1").size() > from + 50; }));
  }
  CHECK(run.finishes_well());
}

TEST_CASE("a trainer whose node process is killed ends with 1 and says why") {
  ClusterRun run(2, settings);
  NodeProcesses nodes(run);
  run.start_all({"--step-ms", "4"});
  REQUIRE(mixes_with(run, "w1", "w2"));
  nodes.of("w1").signal(SIGKILL);
  CHECK(run.wait("w1") == 1);
  CHECK(run.log("w1").find("the node process of 'w1' (dpwa node) has ended") != std::string::npos);
  const std::size_t from = run.steps("w2").size();
  CHECK(holds_in_time([&] { return run.steps("w2").size() > from + 50; }));
  // Both are started again.
  nodes.start("w1");
  run.start("w1", {"--step-ms", "4"});
  CHECK(mixes_with(run, "w1", "w2"));
  CHECK(run.finishes_well());
}

TEST_CASE("a trainer that finds no node process says how to start it") {
  ClusterRun run(1, "gossip: {daemon: true, start_wait_ms: 100}");
  run.start("w1");
  CHECK(run.wait("w1") == 1);
  CHECK(run.log("w1").find("start it: dpwa node --config " + run.file().string() + " --name w1") !=
        std::string::npos);
}

}  // namespace dpwa
