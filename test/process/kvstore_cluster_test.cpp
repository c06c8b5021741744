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

TEST_CASE(
    "dist_sync: a worker that is killed is left out, comes back and goes on with the others") {
  Store store(3, 1, "type: dist_sync");
  store.start_all(700);
  REQUIRE(store.reaches("w2", 40));
  store.at("w2").signal(SIGKILL);
  const double then = store.clock("w1");
  REQUIRE(store.reaches("w1", then + 50));
  CHECK(store.log("w1").find("worker 'w2' was left out") != std::string::npos);
  store.start("w2", 700);
  store.check_end({"w1", "w2", "w3"});
  CHECK(store.log("w2").find("takes part from step") != std::string::npos);
}

TEST_CASE(
    "dist_sync: a frozen worker is left out, and when it wakes it takes the current weights") {
  Store store(3, 2, "type: dist_sync");
  store.start_all(700);
  REQUIRE(store.reaches("w3", 40));
  store.at("w3").signal(SIGSTOP);
  const double then = store.clock("w1");
  REQUIRE(store.reaches("w1", then + 50));
  store.at("w3").signal(SIGCONT);
  store.check_end({"w1", "w2", "w3"});
  CHECK(store.count("w3", "late") >= 1);
  CHECK(store.log("w3").find("left out, because this node was silent or hung") !=
        std::string::npos);
}

TEST_CASE("replicas: kill -9 of a server while workers train, and it is filled again") {
  for (const std::string type : {"dist_sync", "dist_async"}) {
    CAPTURE(type);
    Store store(2, 2, "type: " + type + ", replicas: 1");
    store.start_all(700);
    REQUIRE(store.reaches("w1", 60));
    store.at("s1").signal(SIGKILL);
    const double then = store.clock("w2");
    REQUIRE(store.reaches("w2", then + 50));
    store.start_server("s1");
    store.check_end({"w1", "w2"}, type == "dist_sync");
    CHECK(store.lines("w1").back()["participants"] == 2);
  }
}

TEST_CASE("a server and a worker that are killed or frozen together stop nobody") {
  for (const std::string type : {"dist_sync", "dist_async"}) {
    for (const int what : {SIGKILL, SIGSTOP}) {
      CAPTURE(type);
      CAPTURE(what);
      Store store(3, 2, "type: " + type + ", replicas: 1");
      store.start_all(700);
      REQUIRE(store.reaches("w2", 40));
      for (const std::string name : {"s1", "w2"}) store.at(name).signal(what);
      for (const std::string name : {"w1", "w3"}) {
        const double then = store.clock(name);
        REQUIRE(store.reaches(name, then + 50));
      }
      if (what == SIGKILL) {
        store.start_server("s1");
        store.start("w2", 700);
      } else {
        for (const std::string name : {"s1", "w2"}) store.at(name).signal(SIGCONT);
      }
      store.check_end({"w1", "w2", "w3"}, type == "dist_sync");
      CHECK(store.lines("w1").back()["participants"] == 3);
    }
  }
}

// The servers have the weights, and decide alone that nobody trains.
TEST_CASE("workers that are all killed at once go on where they were once they are started again") {
  for (const std::size_t servers : {1, 2}) {
    CAPTURE(servers);
    Store store(2, servers, servers == 1 ? "type: dist_sync" : "type: dist_sync, replicas: 1");
    store.start_all(300);
    REQUIRE(store.reaches("w2", 60));
    for (const std::string name : {"w1", "w2"}) store.at(name).signal(SIGKILL);
    for (const std::string name : {"w1", "w2"}) store.at(name).wait(test::run_patience);
    const double then = std::max(store.clock("w1"), store.clock("w2"));
    const std::size_t before = store.lines("w1").size();
    store.start_all(300);
    store.check_end({"w1", "w2"});
    const auto lines = store.lines("w1");
    const auto next = std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(before), lines.end(),
                                   [](const Json& line) { return line.contains("clock"); });
    REQUIRE(next != lines.end());
    CHECK((*next)["clock"] >= then);
  }
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
  CHECK(store.count("w3", "late") >= 1);
}

TEST_CASE("update: worker: a worker that comes when no other has the weights ends with a line") {
  Store store(2, 1, "type: dist_sync, update: worker, min_workers: 1");
  store.start("w1", 100000);
  REQUIRE(store.reaches("w1", 20));
  store.at("w1").signal(SIGKILL);
  store.at("w1").wait(test::run_patience);
  store.start("w2", 150);
  CHECK(store.at("w2").wait(test::run_patience) == 1);
  CHECK(store.log("w2").find("no worker that has its weights takes part") != std::string::npos);
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

TEST_CASE("a worker that comes later takes the current weights and goes on with the others") {
  for (const std::string type : {"dist_sync", "dist_async"}) {
    CAPTURE(type);
    Store store(3, 2, "type: " + type + ", min_workers: 2");
    for (const std::string name : {"w1", "w2"}) store.start(name, 700);
    REQUIRE(store.reaches("w1", 60));
    store.start("w3", 700);
    store.check_end({"w1", "w2", "w3"}, type == "dist_sync");
    CHECK(store.log("w3").find("takes part from step") != std::string::npos);
    CHECK(store.lines("w3").front()["clock"] > 60);
    CHECK(store.lines("w1").back()["participants"] == 3);
  }
}

TEST_CASE("a worker with another model ends with a line and the others go on") {
  for (const std::string type : {"dist_sync", "dist_async"}) {
    CAPTURE(type);
    Store store(3, 1, "type: " + type);
    store.start("w1", 60);
    store.start("w2", 60, 10, -24);
    store.start("w3", 60);
    CHECK(store.at("w2").wait(test::run_patience) == 1);
    INFO(store.logs());
    CHECK(store.log("w2").find("node 'w2' has another model than the run: key 3 is 'third.weight' "
                               "float32[3,24], and that of the run 'second.weight' "
                               "float32[24,24]; 4 keys of 483 elements here, 6 keys of 1083") !=
          std::string::npos);
    store.check_end({"w1", "w3"}, type == "dist_sync");
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
