#include <doctest/doctest.h>

#include "test/dpwa/kvstore/virtual_store.h"

namespace dpwa::kvstore::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Kind {
  const char* name;
  KvstoreType type;
  std::uint64_t staleness = 0;
};
const std::vector<Kind> kinds = {{"dist_sync", KvstoreType::dist_sync, 0},
                                 {"dist_async", KvstoreType::dist_async, 0},
                                 {"dist_ssp 2", KvstoreType::dist_ssp, 2}};

TEST_CASE("a snapshot has each push in all keys of all servers, or in none, and nobody waits") {
  for (const Kind& kind : kinds) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(kind.name);
      CAPTURE(seed);
      VirtualStore store({.type = kind.type,
                          .staleness = kind.staleness,
                          .replicas = seed % 2 == 0,
                          .servers = 3,
                          .workers = 4,
                          .keys = 6,
                          .seed = seed,
                          .loss = 0.02,
                          .doubled = 0.05,
                          .overtaking = 0.1});
      store.slow_down(3, 3);
      store.run(seconds(1));
      for (int times = 0; times < 5; ++times) {
        const std::uint32_t number = store.begin_snapshot();
        const std::uint64_t before = store.clock(0);
        store.run(seconds(1));
        CHECK(store.problem_of(number) == "");
        CHECK(store.clock(0) > before);
      }
      CHECK(store.problem() == "");
    }
  }
}

TEST_CASE("a snapshot has the keys that nobody pushes as well") {
  for (const Kind& kind : kinds) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(kind.name);
      CAPTURE(seed);
      VirtualStore store({.type = kind.type,
                          .staleness = kind.staleness,
                          .replicas = seed % 2 == 0,
                          .servers = 2,
                          .unused_keys = 5,
                          .seed = seed,
                          .loss = 0.02,
                          .overtaking = 0.1});
      store.run(seconds(1));
      for (int times = 0; times < 3; ++times) {
        const std::uint32_t number = store.begin_snapshot();
        store.run(seconds(3));
        CHECK(store.problem_of(number) == "");
      }
    }
  }
}

// A worker that takes part, and what its pushes state.
struct Worker {
  Worker() {
    engine.join();
    Epoch epoch{7, {{server, ServerState::up}}, {{{"w1", 1}, 0}}};
    engine.receive(server, 0, EpochNews{epoch}, now);
    for (const int key : {1, 2}) {
      engine.init(Key(key), {DType::float32, {1}}, {});
      for (const Outgoing& each : engine.take(now)) {
        if (!std::holds_alternative<Init>(each.message)) continue;
        hear(each.tag, std::get<Init>(each.message).slice, AnswerKind::created, 0);
      }
    }
  }
  void hear(std::uint64_t tag, const SliceId& slice, AnswerKind kind, std::uint32_t snapshot) {
    engine.receive(server, tag, Answer{7, slice, kind, 0, 1, nullptr, {}, snapshot}, now);
  }
  Outgoing push(int key, std::uint64_t step) {
    Push push;
    push.slice = {Key(key), 0};
    push.step = step;
    engine.push(std::move(push));
    const auto sent = engine.take(now);
    REQUIRE(sent.size() == 1);
    return sent.front();
  }
  static std::uint32_t stated(const Outgoing& push) {
    return std::get<Push>(push.message).snapshot;
  }

  const MemberId server{"s1", 1};
  const TimePoint now{};
  WorkerEngine engine{{.merged = false}, {"w1", 1}, {"s1"}};
};

TEST_CASE("all pushes of a step state one snapshot, and a worker is past it once none is open") {
  Worker worker;
  const Outgoing first = worker.push(1, 0);
  CHECK(Worker::stated(first) == 0);
  worker.hear(first.tag, {Key(1), 0}, AnswerKind::counted, 3);
  const Outgoing second = worker.push(2, 0);
  CHECK(Worker::stated(second) == 0);
  const Outgoing third = worker.push(1, 1);
  CHECK(Worker::stated(third) == 3);
  CHECK(worker.engine.past_snapshot() == 0);  // the second push
  worker.hear(second.tag, {Key(2), 0}, AnswerKind::counted, 4);
  CHECK(worker.engine.past_snapshot() == 3);
  worker.hear(third.tag, {Key(1), 0}, AnswerKind::counted, 4);
  CHECK(worker.engine.past_snapshot() == 3);  // the step may have more pushes
  CHECK(Worker::stated(worker.push(1, 2)) == 4);
}

TEST_CASE("a worker is past a snapshot once the keys exist that it asked for before") {
  Worker worker;
  const auto init = [&](int key) {
    worker.engine.init(Key(key), {DType::float32, {1}}, {});
    return worker.engine.take(worker.now).back().tag;
  };
  const std::uint64_t third = init(3);
  worker.hear(0, {}, AnswerKind::snapshot_begun, 3);
  CHECK(worker.engine.past_snapshot() == 0);
  const std::uint64_t fourth = init(4);
  worker.hear(third, {Key(3), 0}, AnswerKind::created, 3);
  CHECK(worker.engine.past_snapshot() == 0);  // as long as any is on its way
  worker.hear(fourth, {Key(4), 0}, AnswerKind::created, 3);
  CHECK(worker.engine.past_snapshot() == 3);
  const std::uint64_t fifth = init(5);
  worker.hear(0, {}, AnswerKind::snapshot_begun, 4);
  CHECK(worker.engine.past_snapshot() == 3);
  worker.hear(fifth, {Key(5), 0}, AnswerKind::created, 4);
  CHECK(worker.engine.past_snapshot() == 4);
}

TEST_CASE("a snapshot after the last worker has left has everything at once") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    VirtualStore store({.type = kind.type, .staleness = kind.staleness, .servers = 2});
    store.run(seconds(1));
    for (const std::size_t worker : {0, 1, 2}) {
      store.kill_worker(worker);
      store.run(seconds(3));  // the others decide that it is gone
    }
    const std::uint32_t number = store.begin_snapshot();
    store.run(seconds(1));
    CHECK(store.snapshots().at(number).size() == 4);
  }
}

TEST_CASE("a worker that dies does not keep a snapshot from its end") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    VirtualStore store({.type = kind.type, .staleness = kind.staleness, .servers = 2});
    store.run(seconds(1));
    store.hang(2, true);
    const std::uint32_t number = store.begin_snapshot();
    store.run(milliseconds(50));
    store.kill_worker(2);
    store.run(seconds(3));
    CHECK(store.problem_of(number) == "");
  }
}

TEST_CASE("after a server was replaced, the next snapshot is whole") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    VirtualStore store(
        {.type = kind.type, .staleness = kind.staleness, .replicas = true, .servers = 2});
    store.run(seconds(1));
    store.begin_snapshot();
    store.run(milliseconds(3));
    store.kill_server(1);
    store.run(seconds(3));
    store.start_server(1);
    store.run(seconds(2));
    const std::uint32_t number = store.begin_snapshot();
    store.run(seconds(1));
    CHECK(store.problem_of(number) == "");
    CHECK(store.problem() == "");
  }
}

TEST_CASE("servers that begin with a snapshot go on from its values and steps") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    StoreOptions options{.type = kind.type, .staleness = kind.staleness, .servers = 2};
    options.optimizer = OptimizerKind::momentum;
    VirtualStore first(options);
    first.run(seconds(2));
    const std::uint32_t number = first.begin_snapshot();
    first.run(seconds(1));
    REQUIRE(first.snapshots().at(number).size() == options.keys);
    const auto& captured = first.snapshots().at(number);

    options.steps = 0;  // nobody pushes
    VirtualStore still(options, captured);
    still.run(seconds(2));
    CHECK(still.server(0).epoch().from == SnapshotId{1, number});
    for (const auto& [key, each] : captured) {
      CHECK(still.values(key) == doubles_of(*each.state.values));
    }
    options.steps = 1'000'000;
    options.replicas = true;
    VirtualStore later(options, captured);
    later.run(seconds(2));
    later.quiesce(seconds(2));
    CHECK(later.replicas_agree());
    for (const auto& [name, clock] : captured.begin()->second.state.clocks) {
      CHECK(later.clock(0) > clock.next);
    }
    CHECK(later.failures().empty());
  }
}

TEST_CASE("a dist_sync run that goes on from a snapshot ends with the values of one without") {
  StoreOptions options{.servers = 2, .optimizer = OptimizerKind::momentum, .steps = 100};
  VirtualStore whole(options);
  whole.run(seconds(4));
  VirtualStore first(options);
  first.run(milliseconds(600));
  const std::uint32_t number = first.begin_snapshot();
  first.run(milliseconds(400));
  REQUIRE(first.snapshots().at(number).size() == options.keys);
  REQUIRE(first.snapshots().at(number).begin()->second.state.round < 100);
  options.replicas = true;
  VirtualStore second(options, first.snapshots().at(number));
  second.run(seconds(4));
  for (std::uint64_t key = 0; key < options.keys; ++key) {
    CHECK(second.values(key) == whole.values(key));
  }
}

}  // namespace
}  // namespace dpwa::kvstore::testing
