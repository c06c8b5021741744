#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "test/process/cluster_run.h"
#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

// Backend kvstore with processes: servers and workers that are killed, frozen and started again
// while the others train.
namespace dpwa {
namespace {

using Json = nlohmann::json;

std::string settings_of(std::size_t servers, const std::string& more) {
  return "backend: kvstore\nkvstore: {lost_after_ms: 1000, servers: " +
         test::server_entries(servers) + ", " + more + "}\n";
}

class Store {
 public:
  Store(std::size_t workers, std::size_t servers, const std::string& more)
      : run_(workers, settings_of(servers, more)) {
    for (std::size_t i = 0; i < servers; ++i) start_server("s" + std::to_string(i + 1));
  }

  void start_server(const std::string& name) {
    processes_.erase(name);
    processes_.emplace(name, test::start_server(run_.file(), name));
  }
  // `hidden`: of its model.
  void start(const std::string& name, int steps, int step_ms = 10, int hidden = 24) {
    processes_.erase(name);
    processes_.emplace(
        name, test::ChildProcess({DPWA_COLLECTIVE_TRAINER, run_.file(), name, std::to_string(steps),
                                  std::to_string(step_ms), std::to_string(hidden), output(name)},
                                 run_.directory() / (name + ".log"), {"OMP_NUM_THREADS=1"}));
  }
  void start_all(int steps) {
    for (const std::string& name : run_.names()) start(name, steps);
  }
  test::ChildProcess& at(const std::string& name) { return processes_.at(name); }

  std::vector<Json> lines(const std::string& name) const {
    std::vector<Json> found;
    std::ifstream file(output(name));
    for (std::string line; std::getline(file, line) && !file.eof();)
      found.push_back(Json::parse(line));
    return found;
  }
  double clock(const std::string& name) const {
    const auto all = lines(name);
    return all.empty() || !all.back().contains("clock") ? 0 : all.back()["clock"].get<double>();
  }
  bool reaches(const std::string& name, double clock_wanted) const {
    return test::eventually([&] { return clock(name) >= clock_wanted; }, test::run_patience);
  }
  // What `dpwa status --check` prints; empty when it finds no problem.
  std::string status_check() const {
    const auto output = run_.directory() / "check.txt";
    std::filesystem::remove(output);
    test::ChildProcess check({DPWA_CLI, "status", "--check", run_.file()}, output);
    return check.wait(test::run_patience) == 0 ? "" : test::read_text(output);
  }
  std::string log(const std::string& name) const { return run_.log(name); }
  std::string logs() const { return run_.logs() + run_.log("s1") + run_.log("s2"); }

  // Every worker ends with 0 and with one model. In merged types all that were averaged had the
  // same at every clock.
  void check_end(const std::vector<std::string>& workers, bool merged = true) {
    for (const std::string& name : workers) {
      const auto code = at(name).wait(2 * test::run_patience);
      INFO(logs());
      REQUIRE(code == 0);
    }
    std::map<double, std::uint32_t> sums;
    for (const std::string& name : workers) {
      CHECK(lines(name).back()["sum"] == lines(workers.front()).back()["sum"]);
      for (const Json& line : lines(name)) {
        if (!merged || !line.contains("clock") || line["outcome"] != "averaged") continue;
        const auto [known, is_new] = sums.emplace(line["clock"], line["sum"]);
        CAPTURE(name);
        CAPTURE(line.dump());
        CHECK(known->second == line["sum"]);
      }
    }
  }
  std::size_t count(const std::string& name, const std::string& outcome) const {
    const auto all = lines(name);
    return static_cast<std::size_t>(std::ranges::count_if(all, [&](const Json& line) {
      return line.contains("outcome") && line["outcome"] == outcome;
    }));
  }

 private:
  std::string output(const std::string& name) const { return run_.directory() / (name + ".steps"); }

  test::ClusterRun run_;
  std::map<std::string, test::ChildProcess> processes_;
};

}  // namespace

TEST_CASE(
    "dist_sync: a worker that is killed is left out, comes back and goes on with the others") {
  Store store(3, 1, "type: dist_sync");
  store.start_all(400);
  REQUIRE(store.reaches("w2", 40));
  store.at("w2").signal(SIGKILL);
  const double then = store.clock("w1");
  REQUIRE(store.reaches("w1", then + 50));
  CHECK(store.log("w1").find("worker 'w2' was left out") != std::string::npos);
  store.start("w2", 400);
  store.check_end({"w1", "w2", "w3"});
  CHECK(store.log("w2").find("takes part from step") != std::string::npos);
}

TEST_CASE(
    "dist_sync: a frozen worker is left out, and when it wakes it takes the current weights") {
  Store store(3, 2, "type: dist_sync");
  store.start_all(400);
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
    store.start_all(400);
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
      store.start_all(400);
      REQUIRE(store.reaches("w2", 40));
      for (const std::string name : {"s1", "w2"}) store.at(name).signal(what);
      for (const std::string name : {"w1", "w3"}) {
        const double then = store.clock(name);
        REQUIRE(store.reaches(name, then + 50));
      }
      if (what == SIGKILL) {
        store.start_server("s1");
        store.start("w2", 400);
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
    return store.status_check().find("server s2: takes nobody in or out before the vote of s1\n") !=
           std::string::npos;
  };
  CHECK(test::eventually(waits, test::run_patience));
  store.start_server("s1");
  store.check_end({"w1", "w2"});
  CHECK(store.log("s2").find("goes on with the votes of the new processes of ") !=
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
  store.start_all(400);
  REQUIRE(store.reaches("w1", 40));
  store.at("w1").signal(SIGKILL);
  double then = store.clock("w2");
  REQUIRE(store.reaches("w2", then + 30));
  store.start("w1", 400);
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
    CHECK(store.at(name).wait(std::chrono::seconds(20)) == 1);  // not after start_wait_ms
    INFO(store.logs());
    CHECK(store.log(name).find("no worker that has its weights takes part") != std::string::npos);
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
