#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/kvstore/lost_words.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/worker_engine.h"

// A server without replicas that is started again while its workers are still there: a new run from
// its newest snapshot, or the end of the run, in words.

namespace dpwa::kvstore {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint start{};
const SliceId slice{Key(1), 0};
const ValueSpec spec{DType::float32, {2}};
const SnapshotId snapshot{800, 3};

Epoch old_epoch(std::vector<std::string> servers = {"s1"}) {
  Epoch epoch;
  epoch.number = 900;
  epoch.run = 890;
  for (std::string& name : servers) epoch.servers.push_back({{name, 7}, ServerState::up});
  epoch.workers = {{{"w1", 3}, 0}, {{"w2", 4}, 0}};
  return epoch;
}

Beat beat_at(std::uint64_t clock) {
  return {900, clock, true, true, 0, 3, {}};
}

// Server s1 under a new incarnation.
struct Returned {
  explicit Returned(bool replicas = false, std::vector<std::string> servers = {"s1"})
      : engine(options(replicas), {"s1", 1000}, servers, start) {}
  static ServerEngineOptions options(bool replicas) {
    ServerEngineOptions options;
    options.shard = rules_of(KvstoreType::dist_sync, 0, replicas);
    options.snapshots = true;
    options.watch.min_workers = 4;  // of the file: two of them had never come
    options.watch.silent_after = milliseconds(1000);
    return options;
  }
  void load() {
    engine.set_stock({snapshot}, true);
    const auto from = engine.start(start);
    REQUIRE(from);
    REQUIRE(from->from == snapshot);
    SliceState state;
    state.values = std::make_shared<Bytes>(8, std::byte{1});
    state.version = 41;
    state.round = 40;
    ShardEngine::Captured captured{snapshot.number, slice, spec, std::move(state)};
    std::vector<ShardEngine::Captured> all;
    all.push_back(std::move(captured));
    engine.load(snapshot, std::move(all));
  }
  void begin_empty() {
    engine.set_stock({}, false);
    engine.load({}, {});
  }
  // Whether it asks the worker for its epoch.
  bool hears(const MemberId& worker, TimePoint now, std::uint64_t clock = 50) {
    engine.receive(worker, 0, beat_at(clock), now);
    for (const Outgoing& each : engine.take()) {
      if (each.to == worker.name && std::holds_alternative<AskEpoch>(each.message)) return true;
    }
    return false;
  }
  template <class Content>
  std::optional<Content> told(const std::string& worker) {
    for (Outgoing& each : engine.take()) {
      auto* content = std::get_if<Content>(&each.message);
      if (each.to == worker && content != nullptr) return *std::move(content);
    }
    return std::nullopt;
  }
  // That the run is over.
  std::optional<Answer> told_end(const std::string& worker) {
    auto answer = told<Answer>(worker);
    return answer && answer->kind == AnswerKind::run_over ? answer : std::nullopt;
  }

  ServerEngine engine;
};

WorkerEngine worker_in(const Epoch& epoch) {
  WorkerEngine worker({}, {"w1", 3}, {"s1"});
  worker.receive({"s1", 7}, 0, EpochNews{epoch}, start);
  worker.init(Key(1), spec, {});
  worker.take(start);
  worker.take_events();
  return worker;
}

TEST_CASE(
    "a lone server that comes back goes on from its snapshot with the workers that are there") {
  Returned server;
  server.load();
  CHECK(server.hears({"w1", 3}, start));
  server.engine.receive({"w1", 3}, 0, EpochNews{old_epoch()}, start);
  CHECK(server.engine.epoch().number == 0);
  CHECK(server.engine.ended().number == 900);
  server.engine.tick(start + milliseconds(300));
  CHECK(server.engine.epoch().number == 0);  // w2 is not there yet
  server.hears({"w2", 4}, start + milliseconds(400));
  server.engine.tick(start + milliseconds(700));
  const Epoch next = server.engine.epoch();
  CHECK(next.number >= 1000);
  CHECK(next.run == next.number);
  CHECK(next.from == snapshot);
  // The steps go on from where the workers are.
  CHECK(next.workers == std::vector<WorkerEntry>{{{"w1", 3}, 50}, {{"w2", 4}, 50}});
  REQUIRE(server.engine.shard().view(slice));
  CHECK(server.engine.shard().view(slice)->version == 41);
  CHECK(server.engine.shard().view(slice)->round == 50);

  WorkerEngine worker = worker_in(old_epoch());
  const auto news = server.told<EpochNews>("w1");
  REQUIRE(news);
  worker.receive({"s1", 1000}, 0, *news, start);
  const auto events = worker.take_events();
  REQUIRE(events.size() == 2);
  CHECK(std::get<WorkerEngine::LeftOut>(events[0]).snapshot == 3);
  CHECK(std::get<WorkerEngine::Joined>(events[1]).first_step == 50);
}

TEST_CASE("a lone server that comes back does not wait for a worker that has ended meanwhile") {
  Returned server;
  server.load();
  server.hears({"w1", 3}, start);
  Epoch old = old_epoch();
  old.left = {"w0"};
  server.engine.receive({"w1", 3}, 0, EpochNews{old}, start);
  // w2 could have connected again until then.
  for (int ms = 0; ms <= 3500; ms += 100) {
    server.hears({"w1", 3}, start + milliseconds(ms));
    server.engine.tick(start + milliseconds(ms));
    if (ms < 2800) CHECK(server.engine.epoch().number == 0);
  }
  CHECK(server.engine.epoch().workers == std::vector<WorkerEntry>{{{"w1", 3}, 50}});
  CHECK(server.engine.epoch().left == old.left);
}

TEST_CASE("a new run has a higher number than the old one, also if the clock was set back") {
  Returned server;
  server.load();
  Epoch late = old_epoch();
  late.number = 5000;
  late.workers.pop_back();
  server.engine.receive({"w1", 3}, 0, EpochNews{late}, start);
  server.engine.receive({"w1", 3}, 0, Beat{5000, 50, true, true, 0, 3, {}}, start);
  server.engine.tick(start + milliseconds(300));
  CHECK(server.engine.epoch().number == 5001);
}

TEST_CASE("without a snapshot the workers are told that the run is over, and a new one can begin") {
  Returned server;
  server.engine.receive({"w1", 3}, 0, EpochNews{old_epoch()}, start);
  CHECK_FALSE(server.told_end("w1"));  // it has not looked yet
  server.begin_empty();
  server.engine.receive({"w1", 3}, 0, EpochNews{old_epoch()}, start);
  const auto over = server.told_end("w1");
  REQUIRE(over);
  CHECK(server.engine.epoch().number == 0);

  WorkerEngine worker = worker_in(old_epoch());
  worker.receive({"s1", 1000}, 0, *over, start);
  const auto events = worker.take_events();
  REQUIRE(events.size() == 1);
  CHECK(std::get<WorkerEngine::RunOver>(events[0]).problem == words_for_lost({"s1"}));
  worker.tick(start + milliseconds(1000));
  CHECK(worker.take(start + milliseconds(1000)).empty());
  CHECK_FALSE(worker.takes_part());

  // Workers that are started again begin as with any new server, all of them together.
  for (const char* name : {"w1", "w2", "w3", "w4"}) {
    server.engine.receive({name, 2000}, 0, Beat{0, 0, true, true, 0, 0, {}},
                          start + milliseconds(2000));
    CHECK(server.engine.epoch().number == 0);
    server.engine.tick(start + milliseconds(2000));
  }
  server.engine.tick(start + milliseconds(2500));
  CHECK(server.engine.epoch().workers.size() == 4);
  CHECK(server.engine.epoch().workers.front() == WorkerEntry{{"w1", 2000}, 0});
}

TEST_CASE("a run of which another server still has its part is over, snapshot or not") {
  Returned server(false, {"s1", "s2"});
  server.engine.set_stock({snapshot}, true);
  server.engine.receive({"w1", 3}, 0, EpochNews{old_epoch({"s1", "s2"})}, start);
  CHECK_FALSE(server.told_end("w1"));  // s2 may have been started again, too
  server.engine.receive({"s2", 7}, 0, Beat{900, 50, false, false, 0, 0, {}}, start);
  server.engine.receive({"w1", 3}, 0, EpochNews{old_epoch({"s1", "s2"})}, start);
  CHECK(server.told_end("w1"));
}

TEST_CASE("with replicas a server that comes back takes the epoch of the others") {
  Returned server(true, {"s1", "s2"});
  server.engine.receive({"s2", 7}, 0, EpochNews{old_epoch({"s1", "s2"})}, start);
  CHECK(server.engine.epoch().number == 900);
  CHECK(server.engine.ended().number == 0);
  server.engine.tick(start + milliseconds(300));
  CHECK_FALSE(server.told_end("w1"));
}

TEST_CASE("with replicas the run is over once both holders of a slice were started again") {
  const auto told_when = [](std::uint64_t epoch_of_s2) {
    Returned server(true, {"s1", "s2"});
    server.engine.receive({"w1", 3}, 0, EpochNews{old_epoch({"s1", "s2"})}, start);
    // It has not heard of s2, which may have had the values since.
    server.engine.tick(start + milliseconds(300));
    CHECK_FALSE(server.told_end("w1"));
    const TimePoint heard = start + milliseconds(900);
    server.engine.receive({"s2", 1001}, 0, Beat{epoch_of_s2, 0, false, false, 0, 0, {}}, heard);
    server.engine.tick(start + milliseconds(1300));
    return server.told_end("w1");
  };
  CHECK_FALSE(told_when(902));  // it was filled, in an epoch that this server will hear of
  const auto over = told_when(0);
  REQUIRE(over);
  WorkerEngine worker({}, {"w1", 3}, {"s1", "s2"});
  worker.receive({"s1", 7}, 0, EpochNews{old_epoch({"s1", "s2"})}, start);
  worker.init(Key(1), spec, {});
  worker.take_events();
  worker.receive({"s1", 1000}, 0, *over, start);
  const auto events = worker.take_events();
  REQUIRE(events.size() == 1);
  CHECK(std::get<WorkerEngine::RunOver>(events[0]).problem == words_for_lost({"s1", "s2"}));
}

TEST_CASE("the line of a lost run names one server or several") {
  CHECK(words_for_lost({"s1"}).starts_with("server 's1' was started again, and its values and "));
  CHECK(words_for_lost({"s1", "s2"})
            .starts_with("servers 's1', 's2' were started again, and their values and "));
}

}  // namespace
}  // namespace dpwa::kvstore
