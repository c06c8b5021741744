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
  CHECK(test::has(store.log("w1"), "worker 'w2' was left out"));
  if (what == SIGKILL) {
    store.start_server("s1");
    store.start("w2", 700);
  } else {
    for (const std::string name : {"s1", "w2"}) store.at(name).signal(SIGCONT);
  }
  store.check_end({"w1", "w2", "w3"}, type == "dist_sync");
  CHECK(store.lines("w1").back()["participants"] == 3);
  CHECK(test::has(store.log("w2"), "takes part from step"));
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
    return test::has(store.status_check(),
                     "server s2: cannot change the members without the vote of s1\n");
  };
  CHECK(test::eventually(waits, test::run_patience));
  store.start_server("s1");
  store.check_end({"w1", "w2"});
  CHECK(test::has(store.log("s2"), "continues with the votes of the new processes of "));
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
    CHECK(test::has(store.log(name), "no worker that has its weights takes part"));
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
  REQUIRE(test::eventually([&] { return test::has(store.log("w1"), "server 's1'"); },
                           test::run_patience));
  store.at("w1").signal(SIGTERM);
  CHECK(store.at("w1").wait(test::run_patience) == 128 + SIGTERM);
}

}  // namespace dpwa
