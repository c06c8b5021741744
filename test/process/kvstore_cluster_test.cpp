#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "test/process/trained_store.h"
#include "test/support/eventually.h"

// Backend kvstore with processes: servers and workers that are killed, frozen and started again
// while the others train.
namespace dpwa {
namespace {

using Json = nlohmann::json;
using Store = test::TrainedStore;

}  // namespace

TEST_CASE("a server and a worker that are killed or frozen together stop nobody") {
  std::string type;
  int what = 0;
  SUBCASE("dist_sync, killed") {
    type = "dist_sync", what = SIGKILL;
  }
  SUBCASE("dist_async, frozen") {
    type = "dist_async", what = SIGSTOP;
  }
  Store store(3, 2, "type: " + type + ", replicas: 1");
  store.start_all(700);
  REQUIRE(store.reaches("w2", 40));
  for (const std::string name : {"s1", "w2"}) store.at(name).signal(what);
  for (const std::string name : {"w1", "w3"}) {
    const double then = store.clock(name);
    REQUIRE(store.reaches(name, then + 50));
  }
  CHECK(store.log("w1").find("worker 'w2' was left out") != std::string::npos);
  if (what == SIGKILL) {
    store.start_server("s1");
    store.start("w2", 700);
  } else {
    for (const std::string name : {"s1", "w2"}) store.at(name).signal(SIGCONT);
  }
  store.check_end({"w1", "w2", "w3"}, type == "dist_sync");
  CHECK(store.lines("w1").back()["participants"] == 3);
  CHECK(store.log("w2").find("takes part from step") != std::string::npos);
}

// The servers have the weights, and decide alone that nobody trains.
TEST_CASE("workers that are all killed at once go on where they were once they are started again") {
  Store store(2, 2, "type: dist_sync, replicas: 1");
  store.start_all(120);
  REQUIRE(store.reaches("w2", 60));
  for (const std::string name : {"w1", "w2"}) store.at(name).signal(SIGKILL);
  for (const std::string name : {"w1", "w2"}) store.at(name).wait(test::run_patience);
  const double then = std::max(store.clock("w1"), store.clock("w2"));
  const std::size_t before = store.lines("w1").size();
  store.start_all(120);
  store.check_end({"w1", "w2"});
  const auto lines = store.lines("w1");
  const auto next = std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(before), lines.end(),
                                 [](const Json& line) { return line.contains("clock"); });
  REQUIRE(next != lines.end());
  CHECK((*next)["clock"] >= then);
}

TEST_CASE("a server and a worker of two each that are killed: all go on once both are back") {
  Store store(2, 2, "type: dist_sync, replicas: 1");
  store.start_all(300);
  REQUIRE(store.reaches("w2", 60));
  for (const std::string name : {"s1", "w1"}) store.at(name).signal(SIGKILL);
  store.start("w1", 300);
  const auto waits = [&] {
    return store.status_check().find(
               "server s2: cannot change the members without the vote of s1\n") !=
           std::string::npos;
  };
  CHECK(test::eventually(waits, test::run_patience));
  store.start_server("s1");
  store.check_end({"w1", "w2"});
  CHECK(store.log("s2").find("continues with the votes of the new processes of ") !=
        std::string::npos);
}

TEST_CASE("dist_ssp: a straggler holds the others back by the staleness, no more") {
  Store store(2, 1, "type: dist_ssp, staleness: 5");
  store.start("w1", 60, 40);
  store.start("w2", 60, 0);
  REQUIRE(store.reaches("w1", 30));
  CHECK(store.clock("w2") <= store.clock("w1") + 7);  // its line is written after the step
  store.check_end({"w1", "w2"}, false);
}

TEST_CASE("update: worker: killed and frozen workers come back with the weights of the others") {
  Store store(3, 2, "type: dist_sync, update: worker");
  store.start_all(700);
  REQUIRE(store.reaches("w1", 40));
  store.at("w1").signal(SIGKILL);
  double then = store.clock("w2");
  REQUIRE(store.reaches("w2", then + 30));
  store.start("w1", 700);
  then = store.clock("w2");
  REQUIRE(store.reaches("w1", then + 20));
  store.at("w3").signal(SIGSTOP);
  then = store.clock("w2");
  REQUIRE(store.reaches("w2", then + 30));
  store.at("w3").signal(SIGCONT);
  store.check_end({"w1", "w2", "w3"});
  CHECK(store.count("w3", "dropped") >= 1);
  CHECK(store.log("w3").find("left out, because this node was silent or hung") !=
        std::string::npos);
}

TEST_CASE("update: worker: two workers that come when the last one has gone both end with a line") {
  Store store(3, 1, "type: dist_sync, update: worker, min_workers: 1");
  store.start("w1", 100000);
  REQUIRE(store.reaches("w1", 20));
  store.at("w1").signal(SIGKILL);
  for (const std::string name : {"w2", "w3"}) store.start(name, 150);
  for (const std::string name : {"w2", "w3"}) {
    CHECK(store.at(name).wait(std::chrono::seconds(45)) == 1);  // not after start_wait_ms
    INFO(store.logs());
    CHECK(store.log(name).find("no worker that has its weights takes part") != std::string::npos);
  }
}

TEST_CASE("SIGTERM ends a worker that waits for servers, and the others do not wait for it") {
  Store store(2, 1, "type: dist_sync");
  store.start_all(100000);
  REQUIRE(store.reaches("w2", 20));
  store.at("w2").signal(SIGTERM);
  CHECK(store.at("w2").wait(test::run_patience) == 128 + SIGTERM);
  const double then = store.clock("w1");
  REQUIRE(store.reaches("w1", then + 20));
  store.at("s1").signal(SIGKILL);
  REQUIRE(test::eventually([&] { return store.log("w1").find("server 's1'") != std::string::npos; },
                           test::run_patience));
  store.at("w1").signal(SIGTERM);
  CHECK(store.at("w1").wait(test::run_patience) == 128 + SIGTERM);
}

}  // namespace dpwa
