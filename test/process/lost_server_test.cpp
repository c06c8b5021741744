#include <doctest/doctest.h>
#include <signal.h>

#include <string>

#include "test/dpwa/kvserver/store_worker.h"
#include "test/process/cluster_run.h"
#include "test/process/server_processes.h"
#include "test/process/store_trainers.h"

// Servers without replicas that are killed and started again while their workers train.

namespace dpwa {
namespace {

using test::holds_in_time;
using test::ServerProcesses;
using test::StoreTrainers;

Config lone_server(bool snapshots, std::size_t servers = 1) {
  Config config = test::store_config(servers);
  config.kvstore.min_workers = 2;
  if (snapshots) {
    config.kvstore.snapshots.folder = "/chosen/by/the/fixture";
    config.kvstore.snapshots.every = std::chrono::milliseconds(100);
  }
  return config;
}

}  // namespace

TEST_CASE("a lone server that is killed comes back from its snapshot, and its workers go on") {
  ServerProcesses servers(lone_server(true));
  StoreTrainers trainers(servers, {"w1", "w2"}, "momentum", 150);
  trainers.start(20);
  for (unsigned kill = 1; kill <= 2; ++kill) {
    const unsigned before = kill == 1 ? 0 : servers.snapshot();
    REQUIRE_MESSAGE(holds_in_time([&] { return servers.snapshot() > before; }), trainers.logs());
    servers.at("s1").signal(SIGKILL);
    servers.at("s1").wait(test::run_patience);
    servers.start("s1");
    REQUIRE_MESSAGE(holds_in_time([&] {
                      return trainers.joined("w1").size() > kill &&
                             trainers.joined("w2").size() > kill;
                    }),
                    trainers.logs());
  }
  REQUIRE_MESSAGE(trainers.finish(), trainers.logs());
  CHECK(servers.count("s1", "starts from snapshot ") == 2);
  // Steps are not counted back.
  const auto joined = trainers.joined("w1");
  CHECK(joined.back() > joined.front());
  CHECK(trainers.weights("w1") == trainers.weights("w2"));
}

TEST_CASE("without a snapshot the workers end with one line, and can be started again") {
  std::size_t count = 1;
  bool snapshots = false;
  SUBCASE("one server") {}
  SUBCASE("two servers, of which one goes on, with snapshots") {
    count = 2;
    snapshots = true;
  }
  ServerProcesses servers(lone_server(snapshots, count));
  {
    StoreTrainers trainers(servers, {"w1", "w2"}, "momentum", 100'000);
    trainers.start(20);
    REQUIRE_MESSAGE(holds_in_time([&] {
                      return trainers.steps("w1") > 10 && (!snapshots || servers.snapshot() > 0);
                    }),
                    trainers.logs());
    servers.at("s1").signal(SIGKILL);
    servers.at("s1").wait(test::run_patience);
    servers.start("s1");
    for (const std::string name : {"w1", "w2"}) {
      CHECK(trainers.at(name).wait(test::run_patience) == 4);
      const std::string log = trainers.log(name);
      INFO(trainers.logs());
      CHECK(test::has(log, "worker '" + name +
                               "' cannot continue: server 's1' was started again, and its "
                               "values and the state of the optimizer are lost"));
      CHECK(test::has(log, "workers from their checkpoints (dpwa-train --resume)"));
    }
  }
  if (count > 1) {
    servers.kill_all();
    for (const std::string name : {"s1", "s2"}) servers.start(name);
  }
  StoreTrainers again(servers, {"w1", "w2"}, "momentum", 40);
  again.start(0);
  REQUIRE_MESSAGE(again.finish(), again.logs());
  CHECK(again.weights("w1") == again.weights("w2"));
}

}  // namespace dpwa
