#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "test/dpwa/kvserver/store_worker.h"
#include "test/process/cluster_run.h"
#include "test/process/server_processes.h"
#include "test/process/store_trainers.h"
#include "test/support/memory_files.h"

// Workers and servers of one host that read memory of one another, as processes which are killed
// and frozen meanwhile.

namespace dpwa {
namespace {

using std::chrono::seconds;
using test::ChildProcess;
using test::holds_in_time;
using test::ServerProcesses;
using test::StoreTrainers;

Config store_of(std::size_t servers) {
  Config config = test::store_config(servers);
  config.kvstore.min_workers = 2;
  config.kvstore.replicas = servers > 1 ? 1 : 0;
  return config;
}

// Servers and the workers w1 and w2, which train.
struct Training {
  explicit Training(const Config& config)
      : servers(config), trainers(servers, {"w1", "w2"}, "momentum", 200) {
    trainers.start(0);
  }

  // Both workers train, and their gradients are read where they are.
  void is_in_memory() {
    REQUIRE_MESSAGE(holds_in_time([&] {
                      return trainers.steps("w1") > 5 && trainers.used_memory("w1") &&
                             trainers.used_memory("w2") && mapped("s1", "w2") && mapped("w1", "s1");
                    }),
                    trainers.logs());
  }
  // The worker makes 5 more steps.
  void goes_on(const std::string& name) {
    const std::uint64_t before = trainers.steps(name);
    REQUIRE_MESSAGE(holds_in_time([&] { return trainers.steps(name) >= before + 5; }),
                    trainers.logs());
  }
  void finishes() { REQUIRE_MESSAGE(trainers.finish(), trainers.logs()); }

  ChildProcess& at(const std::string& name) {
    return name[0] == 's' ? servers.at(name) : trainers.at(name);
  }
  // Whether `reader` has mapped memory of `owner`.
  bool mapped(const std::string& reader, const std::string& owner) {
    return mapped(reader, at(owner).id());
  }
  bool mapped(const std::string& reader, pid_t owner) {
    return test::mapped_memory_files(at(reader).id(), owner) > 0;
  }

  ServerProcesses servers;
  StoreTrainers trainers;
};

}  // namespace

TEST_CASE("kill -9 of a worker whose memory is read: the round closes, the memory is given back") {
  Training run(store_of(1));
  for (int kill = 0; kill < 2; ++kill) {
    run.is_in_memory();
    const pid_t killed = run.at("w2").id();
    run.at("w2").signal(SIGKILL);
    run.goes_on("w1");
    CHECK(holds_in_time([&] { return !run.mapped("s1", killed); }));
    run.trainers.start("w2", 0);
    REQUIRE_MESSAGE(holds_in_time([&] { return run.trainers.joined("w2").size() > 1U + kill; }),
                    run.trainers.logs());
  }
  run.finishes();
  CHECK(run.trainers.weights("w1") == run.trainers.weights("w2"));
  CHECK(test::names_in_dev_shm() == 0);
}

TEST_CASE("a server that is killed or frozen while it reads memory costs not a bit") {
  Config config = store_of(2);
  config.kvstore.lost_after = seconds(5);  // no worker is to be left out on a loaded machine
  std::string expected;
  {
    Config over_tcp = config;
    over_tcp.transport.same_host = false;
    over_tcp.kvstore.lost_after = seconds(20);
    Training run(over_tcp);
    run.finishes();
    CHECK_FALSE(run.trainers.used_memory("w1"));
    expected = run.trainers.weights("w1");
    REQUIRE(!expected.empty());
  }
  for (const int number : {SIGKILL, SIGSTOP}) {
    CAPTURE(number);
    Training run(config);
    run.is_in_memory();
    const pid_t hit = run.at("s1").id();
    run.at("s1").signal(number);
    run.goes_on("w1");
    if (number == SIGKILL) {
      CHECK(holds_in_time([&] { return !run.mapped("w1", hit); }));
      run.at("s1").wait(test::run_patience);
      run.servers.start("s1");
    } else {
      run.at("s1").signal(SIGCONT);
    }
    run.finishes();
    CHECK(run.trainers.weights("w1") == expected);
    CHECK(run.trainers.weights("w2") == expected);
    CHECK(test::names_in_dev_shm() == 0);
  }
}

}  // namespace dpwa
