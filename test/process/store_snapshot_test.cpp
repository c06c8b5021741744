#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "dpwa/kvstore/slices.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/process/cluster_run.h"
#include "test/process/server_processes.h"
#include "test/process/store_trainers.h"

// Servers of the store that write snapshots and start from them, all as processes.

namespace dpwa {
namespace {

namespace fs = std::filesystem;
using kvstore::Key;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::holds_in_time;
using test::ServerProcesses;
using Trainers = test::StoreTrainers;

Config with_snapshots(KvstoreType type = KvstoreType::dist_sync,
                      milliseconds every = milliseconds(100)) {
  Config config = test::store_config(2, type);
  config.kvstore.snapshots.folder = "/chosen/by/the/fixture";
  config.kvstore.snapshots.every = every;
  return config;
}

// One key of so many bytes at each server.
class OneWorker {
 public:
  OneWorker(const Config& config, std::size_t bytes) : worker(config, "w1") {
    REQUIRE(worker.joined());
    for (int number = 0; keys_.size() < 2; ++number) {
      const auto home = kvstore::cut_into_slices(Key(number), bytes / 4, 2).front().server;
      if (home == keys_.size()) keys_.emplace_back(number);
    }
    zeros_.resize(bytes / 4);
    ones_.assign(bytes / 4, 1);
    for (const Key& key : keys_) REQUIRE(worker.init(key, zeros_));
    worker.call([&](kvstore::WorkerEngine& engine) {
      first_step = step = engine.epoch().worker("w1")->first_step;
    });
  }
  bool train() {
    for (const Key& key : keys_) {
      if (!worker.push(key, step, ones_, 1)) return false;
    }
    ++step;
    return true;
  }
  // Each acknowledged update was made, and once.
  bool nothing_lost() {
    return std::ranges::all_of(keys_, [&](const Key& key) {
      return worker.pull(key, step) == std::vector<float>(zeros_.size(), -static_cast<float>(step));
    });
  }
  // Trains until the condition holds.
  bool until(const std::function<bool()>& condition) {
    return holds_in_time([&] { return !train() || condition(); }) && condition();
  }

  test::StoreWorker worker;
  std::uint64_t first_step = 0;
  std::uint64_t step = 0;

 private:
  std::vector<Key> keys_;
  std::vector<float> zeros_;
  std::vector<float> ones_;
};

}  // namespace

TEST_CASE("a run that is killed as a whole and started again ends as one that was not") {
  KvstoreType type = KvstoreType::dist_sync;
  std::string optimizer = "momentum";
  std::vector<std::string> workers = {"w1", "w2"};
  std::uint32_t replicas = 0;
  SUBCASE("dist_sync, adam, with replicas") {
    optimizer = "adam";
    replicas = 1;
  }
  SUBCASE("dist_async with one worker, momentum") {
    type = KvstoreType::dist_async;
    workers = {"w1"};
  }
  constexpr int steps = 100;
  Config config = with_snapshots(type);
  config.kvstore.min_workers = static_cast<std::uint32_t>(workers.size());
  config.kvstore.replicas = replicas;
  config.kvstore.lost_after = seconds(20);  // none is to be left out on a loaded machine
  std::string expected;
  {
    Config without = test::store_config(2, type);
    without.kvstore.min_workers = config.kvstore.min_workers;
    without.kvstore.lost_after = config.kvstore.lost_after;
    const ServerProcesses servers(without);
    Trainers whole(servers, workers, optimizer, steps);
    whole.start(0);
    REQUIRE_MESSAGE(whole.finish(), whole.logs());
    expected = whole.weights("w1");
    REQUIRE(!expected.empty());
  }
  ServerProcesses servers(config);
  Trainers trainers(servers, workers, optimizer, steps);
  trainers.start(50);
  constexpr int kills = 2;
  unsigned last = 0;
  for (int kill = 1; kill <= kills; ++kill) {
    REQUIRE_MESSAGE(holds_in_time([&] { return servers.snapshot() > last; }), trainers.logs());
    trainers.kill_all();
    servers.kill_all();
    for (const std::string name : {"s1", "s2"}) servers.start(name);
    trainers.start(kill < kills ? 50 : 0);
    REQUIRE_MESSAGE(holds_in_time([&] { return servers.snapshot() > 0; }), trainers.logs());
    last = servers.snapshot();
  }
  REQUIRE_MESSAGE(trainers.finish(), trainers.logs());
  for (const std::string& name : workers) {
    CHECK_MESSAGE(trainers.weights(name) == expected, trainers.logs());
    const auto joined = trainers.joined(name);
    REQUIRE(joined.size() == kills + 1);
    CHECK(joined.front() == 0);
    CHECK(std::ranges::is_sorted(joined));
    CHECK(std::ranges::adjacent_find(joined) == joined.end());
    CHECK(joined.back() < steps);
  }
  CHECK(servers.count("s2", "starts from snapshot ") == kills);
  for (const std::string name : {"s1", "s2"}) servers.at(name).signal(SIGTERM);
  for (const std::string name : {"s1", "s2"}) servers.at(name).wait(test::run_patience);
  for (const fs::path& file : servers.snapshots("s1")) {
    struct stat status {};
    REQUIRE(::stat(file.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
  CHECK(servers.snapshots("s1").size() <= 2);
}

TEST_CASE("a disk that takes no snapshot is named once, and training and old snapshots go on") {
  ServerProcesses servers(with_snapshots());
  constexpr std::size_t bytes = 400'000;
  OneWorker training(servers.config(), bytes);
  REQUIRE(training.until([&] { return servers.snapshot() >= 1; }));
  const auto limit_files_of = [&](const std::string& name, rlim_t limit) {
    const rlimit bound{limit, RLIM_INFINITY};
    REQUIRE(::prlimit(servers.at(name).id(), RLIMIT_FSIZE, &bound, nullptr) == 0);
  };
  limit_files_of("s2", bytes / 4);
  REQUIRE(training.until([&] {
    const auto status = servers.status("s2");
    return status.is_object() && status["snapshot"]["failures"] >= 3U;
  }));
  const auto line = "was not written: File too large; training continues, and earlier snapshots";
  CHECK(servers.count("s2", line) == 1);
  CHECK(holds_in_time([&] { return servers.snapshots("s2", ".tmp").empty(); }));  // between tries
  CHECK_FALSE(servers.snapshots("s2").empty());
  CHECK_FALSE(servers.snapshots("s1").empty());
  CHECK(training.nothing_lost());

  const unsigned before = servers.snapshot();
  limit_files_of("s2", RLIM_INFINITY);
  CHECK(training.until([&] { return servers.snapshot() > before; }));
}

TEST_CASE("a damaged snapshot is named and an older one taken, a foreign one ends the server") {
  ServerProcesses servers(with_snapshots());
  std::optional<OneWorker> training(std::in_place, servers.config(), 4000);
  REQUIRE(training->until([&] { return servers.snapshots("s2").size() == 2; }));
  training.reset();
  servers.kill_all();
  const auto kept = servers.snapshots("s2");
  REQUIRE(kept.size() == 2);
  fs::resize_file(kept.back(), fs::file_size(kept.back()) / 2);
  for (const std::string name : {"s1", "s2"}) servers.start(name);
  training.emplace(servers.config(), 4000);
  CHECK(test::has(servers.log("s2"),
                  "snapshot " + kept.back().string() + " is cut off; set aside as *.damaged"));
  CHECK(servers.count("s1", "starts from snapshot ") == 1);
  CHECK(servers.count("s2", "starts from snapshot ") == 1);
  CHECK(training->first_step > 0);
  CHECK(training->nothing_lost());
  REQUIRE(training->train());
  CHECK(training->nothing_lost());
  training.reset();
  servers.kill_all();

  servers.set_cluster("other");
  servers.start("s1");
  CHECK(servers.at("s1").wait(test::run_patience) == 2);
  CHECK(test::has(servers.log("s1"), "is of cluster 'test', not 'other'"));

  servers.set_cluster("test");
  for (const std::string ending : {".snapshot", ".ready", ".damaged"}) {
    for (const fs::path& file : servers.snapshots("s2", ending)) fs::remove(file);
  }
  for (const std::string name : {"s1", "s2"}) servers.start(name);
  const auto refused = [&] {
    return servers.count("s1", "no snapshot of the servers is at all of them") +
               servers.count("s2", "no snapshot of the servers is at all of them") >
           0;
  };
  CHECK(holds_in_time(refused));
  CHECK(holds_in_time([&] { return !servers.at("s1").running() || !servers.at("s2").running(); }));
}

TEST_CASE("a server that is killed or stopped during snapshots costs no update and no snapshot") {
  Config config = with_snapshots(KvstoreType::dist_async, milliseconds(20));
  config.kvstore.replicas = 1;
  ServerProcesses servers(config);
  std::optional<OneWorker> training(std::in_place, servers.config(), 4000);
  REQUIRE(training->until([&] { return servers.snapshot() >= 2; }));
  SUBCASE("kill -9") {
    for (const std::string name : {"s1", "s2"}) {
      servers.at(name).signal(SIGKILL);
      for (int i = 0; i < 20; ++i) REQUIRE(training->train());
      servers.start(name);
      REQUIRE(training->until([&] { return servers.whole(); }));
    }
  }
  SUBCASE("stopped and woken") {
    servers.at("s2").signal(SIGSTOP);
    for (int i = 0; i < 20; ++i) REQUIRE(training->train());
    servers.at("s2").signal(SIGCONT);
    REQUIRE(training->until([&] { return servers.whole(); }));
    CHECK(servers.count("s2", "begins again, empty") == 1);
  }
  const unsigned before = servers.snapshot();
  REQUIRE(training->until([&] { return servers.snapshot() > before + 1; }));
  CHECK(training->nothing_lost());
  const std::uint64_t last = training->step;
  training.reset();
  servers.kill_all();
  for (const std::string name : {"s1", "s2"}) servers.start(name);
  training.emplace(servers.config(), 4000);
  CHECK(training->first_step > 0);
  CHECK(training->first_step <= last);
  CHECK(training->nothing_lost());
}

TEST_CASE("servers that are stopped right after the last step keep the snapshot of it") {
  ServerProcesses servers(with_snapshots(KvstoreType::dist_sync, seconds(3600)));
  std::optional<OneWorker> training(std::in_place, servers.config(), 400'000);
  for (int step = 0; step < 3; ++step) REQUIRE(training->train());
  training->worker.call([](kvstore::WorkerEngine& engine) { engine.leave(); });
  const auto is_alone = [&](const std::string& name) {
    const auto status = servers.status(name);
    return status.is_object() && status["workers"].empty();
  };
  REQUIRE(holds_in_time([&] { return is_alone("s1") && is_alone("s2"); }));
  for (const std::string name : {"s1", "s2"}) servers.at(name).signal(SIGTERM);
  for (const std::string name : {"s1", "s2"}) {
    CAPTURE(name);
    CHECK(servers.at(name).wait(test::run_patience) == 128 + SIGTERM);
    CHECK(servers.snapshots(name).size() == 1);
    CHECK(servers.count(name, "cannot reach server") == 0);
    CHECK(servers.count(name, "worker 'w1' has left") == 1);
  }
  training.reset();
  for (const std::string name : {"s1", "s2"}) servers.start(name);
  training.emplace(servers.config(), 400'000);
  CHECK(training->first_step == 3);
  CHECK(training->nothing_lost());
}

}  // namespace dpwa
