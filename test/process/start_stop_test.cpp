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
