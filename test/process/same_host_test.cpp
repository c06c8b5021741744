#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "test/process/cluster_run.h"
#include "test/support/memory_files.h"

// Processes that read each other's snapshots from memory.

namespace dpwa {
namespace {

using test::ClusterRun;
using test::holds_in_time;

bool all(const std::vector<std::string>& names, const std::function<bool(const std::string&)>& is) {
  return std::ranges::all_of(names, is);
}

// Whether a node reads all of its peers but those of `down` from memory, at this moment.
bool reads_all_from_memory(const ClusterRun& run, const std::string& name,
                           const std::string& down = "") {
  const auto status = run.status(name);
  if (!status.is_object()) return false;
  return std::ranges::all_of(status["peers"], [&](const nlohmann::json& peer) {
    return peer["name"] == down || peer["transport"] == "same_host";
  });
}

int open_memory_files(pid_t process) {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", ignored)) {
    const auto target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (test::has(target, "memfd:dpwa-snapshot")) ++count;
  }
  return count;
}

double longest_wait_ms(const ClusterRun& run, const std::string& name) {
  double longest = 0;
  for (const auto& step : run.steps(name))
    longest = std::max(longest, step["waited_ms"].get<double>());
  return longest;
}

void check_converged(const ClusterRun& run) {
  for (const auto& name : run.names()) {
    CHECK(run.last_line(name)["participants"] == run.names().size());
    CHECK(run.last_line(name)["checksum"] == run.last_line("w1")["checksum"]);
    CHECK(run.last_line(name)["error"] < 0.05);
  }
}

}  // namespace

TEST_CASE("four processes of one host read each other from memory and end with one average") {
  // A lease ends with the timeout of its pull.
  ClusterRun run(4, "gossip: {timeout_ms: 5s, start_wait_ms: 60s, finish_wait_ms: 30s}");
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] {
    return all(run.names(), [&](auto& name) {
      return reads_all_from_memory(run, name) && run.steps(name).size() > 150;
    });
  }));
  for (const auto& name : run.names()) {
    const auto status = run.status(name);
    CHECK(status["same_host_pulls"] > 20);
    CHECK(status["same_host_served"] > 20);
    CHECK(status["same_host_leases_expired"] == 0);
    CHECK(status["protocol_errors"] == 0);
    const pid_t id = run.process(name).id();
    CHECK(open_memory_files(id) == 3);  // its own; those of others are mapped and closed
    CHECK(test::mapped_memory_files(id, id) == 3);
    CHECK(test::mapped_memory_files(id) <= 3 * 4);
    CHECK(test::has(run.log(name), "from its memory, on this host"));
  }
  REQUIRE(run.finishes_well());
  check_converged(run);
  CHECK(test::names_in_dev_shm() == 0);
}

TEST_CASE(
    "a killed process leaves no memory behind with its readers, and is read after a restart") {
  ClusterRun run(4, "gossip: {timeout_ms: 500, start_wait_ms: 60s, finish_wait_ms: 30s}");
  const std::vector<std::string> others{"w1", "w3", "w4"};
  run.start_all({"--step-ms", "4"});
  const pid_t killed = run.process("w2").id();
  REQUIRE(holds_in_time([&] {
    return all(others, [&](auto& name) {
      return test::mapped_memory_files(run.process(name).id(), killed) > 0;
    });
  }));
  run.process("w2").signal(SIGKILL);
  REQUIRE(run.wait("w2") == -SIGKILL);
  CHECK(holds_in_time([&] {
    return all(others, [&](auto& name) {
      return test::mapped_memory_files(run.process(name).id(), killed) == 0;
    });
  }));
  std::map<std::string, std::size_t> at_death;
  for (const auto& name : others) at_death[name] = run.steps(name).size();
  REQUIRE(holds_in_time([&] {
    return all(others, [&](auto& name) {
      return run.count(name, at_death[name], "mixed") > 60 &&
             reads_all_from_memory(run, name, "w2");
    });
  }));

  run.start("w2", {"--step-ms", "4"});
  CHECK(holds_in_time([&] {
    return all(run.names(), [&](auto& name) {
      return reads_all_from_memory(run, name) && run.steps(name).size() > 200;
    });
  }));
  REQUIRE(run.finishes_well());
  check_converged(run);
  for (const auto& name : others) CHECK(longest_wait_ms(run, name) == 0);
}

}  // namespace dpwa
