#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "test/dpwa/kvserver/store_worker.h"
#include "test/process/cluster_run.h"
#include "test/process/server_processes.h"
#include "test/process/store_trainers.h"

// Workers and servers of one host that read memory of one another, as processes which are killed
// and frozen meanwhile.

namespace dpwa {
namespace {

using std::chrono::seconds;
using test::ChildProcess;
using test::holds_in_time;
using test::ServerProcesses;
using test::StoreTrainers;

constexpr int steps = 200;
// Of a loaded machine, beside lost_after. A worker that hangs would be left out after 60 s.
constexpr seconds slack(15);

Config store_of(std::size_t servers) {
  Config config = test::store_config(servers);
  config.kvstore.min_workers = 2;
  config.kvstore.replicas = servers > 1 ? 1 : 0;
  return config;
}

// The memory files of `owner` that `reader` has mapped.
std::size_t mapped(const ChildProcess& reader, pid_t owner) {
  std::ifstream maps("/proc/" + std::to_string(reader.id()) + "/maps");
  const std::string name = "/memfd:dpwa-snapshot-" + std::to_string(owner) + " ";
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += (line + " ").find(name) != line.npos;
  return count;
}

std::size_t names_in_shared_memory() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    count += entry.path().filename().string().find("dpwa") != std::string::npos;
  return count;
}

// Both workers train, and their gradients are read where they are.
bool trains_in_memory(StoreTrainers& trainers, ServerProcesses& servers) {
  return holds_in_time([&] {
    return trainers.steps("w1") > 5 && trainers.used_memory("w1") && trainers.used_memory("w2") &&
           mapped(servers.at("s1"), trainers.at("w2").id()) > 0 &&
           mapped(trainers.at("w1"), servers.at("s1").id()) > 0;
  });
}

// The worker makes 5 more steps, within one detection time.
void goes_on(StoreTrainers& trainers, const std::string& name, const Config& config) {
  const std::uint64_t before = trainers.steps(name);
  const auto began = std::chrono::steady_clock::now();
  REQUIRE_MESSAGE(holds_in_time([&] { return trainers.steps(name) >= before + 5; }),
                  trainers.logs());
  CHECK(std::chrono::steady_clock::now() - began < config.kvstore.lost_after + slack);
}

}  // namespace

TEST_CASE("training in memory ends with the bits of training over TCP, and leaves no memory") {
  std::string expected;
  for (const bool same_host : {false, true}) {
    CAPTURE(same_host);
    Config config = store_of(2);
    config.transport.same_host = same_host;
    config.kvstore.lost_after = seconds(20);  // none is to be left out on a loaded machine
    ServerProcesses servers(config);
    StoreTrainers trainers(servers, {"w1", "w2"}, "momentum", 60);
    trainers.start(0);
    REQUIRE_MESSAGE(trainers.finish(), trainers.logs());
    CHECK(trainers.used_memory("w1") == same_host);
    CHECK(trainers.weights("w1") == trainers.weights("w2"));
    if (same_host) CHECK(trainers.weights("w1") == expected);
    expected = trainers.weights("w1");
  }
  CHECK(!expected.empty());
  CHECK(names_in_shared_memory() == 0);
}

TEST_CASE("kill -9 of a worker whose memory is read: the round closes, the memory is given back") {
  const Config config = store_of(1);
  ServerProcesses servers(config);
  StoreTrainers trainers(servers, {"w1", "w2"}, "momentum", steps);
  trainers.start(0);
  for (int kill = 0; kill < 3; ++kill) {
    REQUIRE_MESSAGE(trains_in_memory(trainers, servers), trainers.logs());
    const pid_t killed = trainers.at("w2").id();
    trainers.at("w2").signal(SIGKILL);
    goes_on(trainers, "w1", config);
    CHECK(holds_in_time([&] { return mapped(servers.at("s1"), killed) == 0; }));
    trainers.start("w2", 0);
    REQUIRE_MESSAGE(holds_in_time([&] { return trainers.joined("w2").size() > 1U + kill; }),
                    trainers.logs());
  }
  REQUIRE_MESSAGE(trainers.finish(), trainers.logs());
  CHECK(trainers.weights("w1") == trainers.weights("w2"));
  CHECK(names_in_shared_memory() == 0);
}

TEST_CASE("a worker that is frozen while its memory is read spoils nothing when it wakes") {
  const Config config = store_of(1);
  ServerProcesses servers(config);
  StoreTrainers trainers(servers, {"w1", "w2"}, "momentum", steps);
  trainers.start(0);
  REQUIRE_MESSAGE(trains_in_memory(trainers, servers), trainers.logs());
  trainers.at("w2").signal(SIGSTOP);
  goes_on(trainers, "w1", config);
  trainers.at("w2").signal(SIGCONT);
  REQUIRE_MESSAGE(trainers.finish(), trainers.logs());
  CHECK(trainers.joined("w2").size() >= 2);
  CHECK(trainers.weights("w1") == trainers.weights("w2"));
  CHECK(servers.status("s1")["not_finite"] == 0);
}

TEST_CASE("a server that is killed or frozen while it reads memory costs nothing") {
  const Config config = store_of(2);
  std::string expected;
  {
    Config over_tcp = config;
    over_tcp.transport.same_host = false;
    ServerProcesses servers(over_tcp);
    StoreTrainers trainers(servers, {"w1", "w2"}, "momentum", steps);
    trainers.start(0);
    REQUIRE_MESSAGE(trainers.finish(), trainers.logs());
    expected = trainers.weights("w1");
  }
  bool kill = true;
  SUBCASE("kill -9") {}
  SUBCASE("SIGSTOP") {
    kill = false;
  }
  ServerProcesses servers(config);
  StoreTrainers trainers(servers, {"w1", "w2"}, "momentum", steps);
  trainers.start(0);
  REQUIRE_MESSAGE(trains_in_memory(trainers, servers), trainers.logs());
  const pid_t hit = servers.at("s1").id();
  servers.at("s1").signal(kill ? SIGKILL : SIGSTOP);
  goes_on(trainers, "w1", config);
  if (kill) {
    CHECK(holds_in_time([&] { return mapped(trainers.at("w1"), hit) == 0; }));
    servers.at("s1").wait(test::run_patience);
    servers.start("s1");
  } else {
    servers.at("s1").signal(SIGCONT);
  }
  REQUIRE_MESSAGE(trainers.finish(), trainers.logs());
  CHECK(trainers.weights("w1") == expected);
  CHECK(trainers.weights("w2") == expected);
  CHECK(names_in_shared_memory() == 0);
}

}  // namespace dpwa
