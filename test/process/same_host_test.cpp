#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "test/process/cluster_run.h"
#include "test/support/memory_files.h"
#include "test/support/memory_reader.h"
#include "test/support/vector_cluster.h"

// Processes that read each other's snapshots from memory.

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::ChildProcess;
using test::ClusterRun;
using test::holds_in_time;

constexpr const char* settings =
    "gossip: {timeout_ms: 500, start_wait_ms: 60s, finish_wait_ms: 30s}";
constexpr std::size_t default_elements = 1000;  // of the vector trainer

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
    if (target.find("memfd:dpwa-snapshot") != std::string::npos) ++count;
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

wire::Hello hello_of(const std::string& name) {
  wire::Hello hello;
  hello.cluster = "dpwa";
  hello.node = name;
  hello.incarnation = 1;
  hello.fingerprint = test::vector_manifest(default_elements).fingerprint();
  return hello;
}

ChildProcess hold_lease(const ClusterRun& run, std::chrono::milliseconds deadline,
                        const std::string& log = "holder.log") {
  const auto output = run.directory() / log;
  ChildProcess holder({DPWA_LEASE_HOLDER, std::to_string(run.ports()[0]), "w2",
                       std::to_string(default_elements), std::to_string(deadline.count())},
                      output);
  REQUIRE(holds_in_time([&] {
    std::string word;
    std::ifstream(output) >> word;
    return word == "holding";
  }));
  return holder;
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
    CHECK(run.log(name).find("from its memory, on this host") != std::string::npos);
  }
  REQUIRE(run.finishes_well());
  check_converged(run);
  CHECK(test::names_in_dev_shm() == 0);
}

TEST_CASE("switched off, processes of one host talk TCP and share no memory") {
  ClusterRun run(2, std::string(settings) + "\ntransport: {same_host: off}");
  run.start_all({"--step-ms", "4"});
  REQUIRE(holds_in_time([&] {
    return all(run.names(), [&](auto& name) { return run.count(name, 0, "mixed") > 20; });
  }));
  for (const auto& name : run.names()) {
    const auto status = run.status(name);
    CHECK(status["peers"][0]["transport"] == "tcp");
    CHECK(status["same_host_pulls"] == 0);
    CHECK(status["same_host_served"] == 0);
    CHECK(status["snapshots_served"] > 0);
    CHECK(open_memory_files(run.process(name).id()) == 0);
    CHECK(test::mapped_memory_files(run.process(name).id()) == 0);
  }
  CHECK(run.finishes_well());
}

TEST_CASE("whichever process is there first, both read from memory once the other has come") {
  ClusterRun run(2, "gossip: {timeout_ms: 500, start_wait_ms: 100, finish_wait_ms: 30s}");
  const std::string first = "w2";
  const std::string second = "w1";
  run.start(first, {"--step-ms", "4"});
  REQUIRE(holds_in_time([&] { return run.steps(first).size() > 10; }));
  run.start(second, {"--step-ms", "4"});
  REQUIRE(holds_in_time([&] {
    return all(run.names(), [&](auto& name) { return reads_all_from_memory(run, name); });
  }));
  CHECK(run.finishes_well());
}

TEST_CASE(
    "a killed process leaves no memory behind with its readers, and is read after a restart") {
  ClusterRun run(4, settings);
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

TEST_CASE("a process stopped again and again in the middle of things blends nothing torn") {
  ClusterRun run(3, settings);
  const ClusterRun::Arguments large{"--step-ms", "4", "--elements", "100000"};
  run.start_all(large);
  REQUIRE(holds_in_time([&] {
    return all(run.names(), [&](auto& name) { return reads_all_from_memory(run, name); });
  }));
  for (int stop = 0; stop < 3; ++stop) {
    const std::vector<std::string> others{"w1", "w2"};
    std::map<std::string, std::size_t> from;
    for (const auto& name : others) from[name] = run.steps(name).size();
    run.process("w3").signal(SIGSTOP);
    std::this_thread::sleep_for(600ms);  // longer than its leases
    CHECK(holds_in_time([&] {
      return all(others, [&](auto& name) { return run.steps(name).size() > from[name] + 10; });
    }));
    run.process("w3").signal(SIGCONT);
    const auto mixed = run.count("w3", 0, "mixed");
    REQUIRE(holds_in_time([&] { return run.count("w3", 0, "mixed") > mixed + 5; }));
  }
  for (const auto& name : run.names()) CHECK(run.status(name)["protocol_errors"] == 0);
  CHECK(holds_in_time(
      [&] { return all(run.names(), [&](auto& name) { return run.steps(name).size() > 300; }); }));
  REQUIRE(run.finishes_well());
  check_converged(run);
}

TEST_CASE("a stopped reader with a snapshot in its hands holds nobody up, and its lease expires") {
  ClusterRun run(2, "gossip: {timeout_ms: 500, start_wait_ms: 100, finish_wait_ms: 100}");
  run.start("w1", {"--step-ms", "2"});
  REQUIRE(holds_in_time([&] { return run.steps("w1").size() > 5; }));
  ChildProcess holder = hold_lease(run, 2s);
  holder.signal(SIGSTOP);
  const auto before = run.status("w1");
  CHECK(before["same_host_leases_expired"] == 0);
  const std::uint64_t published = before["published"];
  CHECK(holds_in_time([&] { return run.status("w1")["published"] > published + 100; }));
  CHECK(holds_in_time([&] { return run.status("w1")["same_host_leases_expired"] == 1; }));
  const auto after = run.status("w1");
  CHECK(after["publishes_skipped"] == before["publishes_skipped"]);
  CHECK(after["same_host_served"] == 0);
  CHECK(longest_wait_ms(run, "w1") == 0);
  run.finish();
  CHECK(run.wait("w1") == 0);
}

TEST_CASE("the lease of a reader that is killed ends at once") {
  ClusterRun run(2, "gossip: {timeout_ms: 500, start_wait_ms: 100, finish_wait_ms: 100}");
  run.start("w1", {"--step-ms", "2"});
  REQUIRE(holds_in_time([&] { return run.steps("w1").size() > 5; }));
  test::MemoryReader other(run.ports()[0], hello_of("w2"));
  const ChildProcess first = hold_lease(run, 10s, "first.log");
  ChildProcess second = hold_lease(run, 10s, "second.log");
  CHECK_FALSE(other.pull(10s));  // the two replies that a peer may have are the holders'
  CHECK(other.last_reply() == wire::MessageType::busy);
  second.signal(SIGKILL);
  CHECK(holds_in_time([&] { return other.pull(10s).has_value(); }));
  CHECK(run.status("w1")["same_host_leases_expired"] == 0);  // it was not waited for
  CHECK(other.release(true));
  CHECK(holds_in_time([&] { return run.status("w1")["same_host_served"] == 1; }));
  run.finish();
  CHECK(run.wait("w1") == 0);
}

}  // namespace dpwa
