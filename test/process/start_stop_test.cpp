#include <doctest/doctest.h>
#include <signal.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "test/process/cluster_run.h"

namespace dpwa {
namespace {

using test::ChildProcess;
using test::ClusterRun;
using test::holds_in_time;

std::string open_as(pid_t pid, int descriptor) {
  std::error_code closed;
  const auto link = std::filesystem::path("/proc") / std::to_string(pid) / "fd";
  return std::filesystem::read_symlink(link / std::to_string(descriptor), closed).string();
}

std::array<std::string, 3> standard_descriptors(pid_t pid) {
  return {open_as(pid, 0), open_as(pid, 1), open_as(pid, 2)};
}

const std::array<std::string, 3> reserved{"/dev/null", "/dev/null", "/dev/null"};

// Starts a program with descriptors 0, 1 and 2 closed, as some service managers do.
ChildProcess start_closed(const ClusterRun& run, std::vector<std::string> program) {
  std::vector<std::string> command{"/bin/sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"};
  command.insert(command.end(), program.begin(), program.end());
  return ChildProcess(std::move(command), run.directory() / "nothing.log");
}

constexpr const char* settings =
    "gossip: {daemon: true, timeout_ms: 500, start_wait_ms: 60s, finish_wait_ms: 30s}";

}  // namespace

TEST_CASE("a node with another model is refused with the tensor's name, the running one goes on") {
  ClusterRun run(2, "gossip: {start_wait_ms: 200, finish_wait_ms: 2s, timeout_ms: 5s}");
  run.start("w1", {"--step-ms", "2", "--elements", "100"});
  REQUIRE(holds_in_time([&] { return run.steps("w1").size() > 5; }));
  run.start("w2", {"--elements", "101"});
  CHECK(run.wait("w2") == 1);
  INFO(run.logs());
  CHECK(run.log("w2").find("'x' is float32[100] on 'w1' and float32[101] on 'w2'") !=
        std::string::npos);
  CHECK(run.log("w1").find("'x' is float32[") != std::string::npos);
  CHECK(run.steps("w2").empty());

  const auto steps = run.steps("w1").size();
  CHECK(holds_in_time([&] { return run.steps("w1").size() > steps + 10; }));
  run.finish();
  CHECK(run.wait("w1") == 0);
}

TEST_CASE("SIGTERM ends a node with exit code 143 while it trains, the others go on") {
  ClusterRun run(3, "gossip: {start_wait_ms: 60s, finish_wait_ms: 30s}");
  run.start_all({"--step-ms", "2"});
  REQUIRE(holds_in_time([&] { return run.steps("w2").size() > 20; }));
  run.process("w2").signal(SIGTERM);
  CHECK(run.wait("w2") == 143);
  const auto mixed = run.count("w1", 0, "mixed");
  CHECK(holds_in_time([&] { return run.count("w1", 0, "mixed") > mixed + 5; }));
  run.finish();
  CHECK(run.wait("w1") == 0);
  CHECK(run.wait("w3") == 0);
  INFO(run.logs());
  CHECK(run.last_line("w1")["participants"] == 2);
  CHECK(run.last_line("w1")["checksum"] == run.last_line("w3")["checksum"]);
}

TEST_CASE("a node that is not in the file, or whose port is taken, ends and says so") {
  ClusterRun run(2, "gossip: {start_wait_ms: 200, finish_wait_ms: 2s}");
  run.start("w9");
  CHECK(run.wait("w9") == 2);
  INFO(run.log("w9"));
  CHECK(run.log("w9").find("w9") != std::string::npos);

  run.start("w1");
  REQUIRE(holds_in_time([&] { return !run.lines("w1").empty(); }));
  // The same node again, under another name for its files.
  test::ChildProcess again({DPWA_VECTOR_TRAINER, run.file(), "w1", run.directory() / "again.jsonl"},
                           run.directory() / "again.log");
  CHECK(again.wait(test::run_patience) == 1);
  INFO(run.log("again"));
  CHECK(run.log("again").find("node 'w1' cannot listen on 127.0.0.1 port " +
                              std::to_string(run.ports()[0])) != std::string::npos);
  run.finish();
  CHECK(run.wait("w1") == 0);
}

TEST_CASE("nothing that a node opens gets the number of a standard descriptor that was closed") {
  ClusterRun run(2, settings);
  auto first = start_closed(run, {DPWA_CLI, "node", "--config", run.file(), "--name", "w1"});
  ChildProcess second({DPWA_CLI, "node", "--config", run.file(), "--name", "w2"},
                      run.directory() / "w2.node.log");
  // The trainer shares its parameters as a memory file, and logs while it waits for its node.
  auto trainer =
      start_closed(run, {DPWA_VECTOR_TRAINER, run.file(), "w1", run.directory() / "w1.jsonl",
                         "--step-ms", "4", "--until", run.directory() / "finish"});
  run.start("w2", {"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.count("w1", 0, "mixed", "w2") > 5; }));
  CHECK(standard_descriptors(first.id()) == reserved);
  CHECK(standard_descriptors(trainer.id()) == reserved);
  first.signal(SIGHUP);  // which it logs
  CHECK(holds_in_time([&] { return run.last_line("w1")["step"] > 300; }));
  run.finish();
  CHECK(trainer.wait(test::run_patience) == 0);
  CHECK(run.wait("w2") == 0);
  CHECK(run.last_line("w1")["error"] < 0.2);
  first.signal(SIGTERM);
  CHECK(first.wait(test::run_patience) == 128 + SIGTERM);
}

}  // namespace dpwa
