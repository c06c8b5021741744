// What the engines of the store guarantee by themselves: each of their invariants broken once.

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/epoch_engine.h"
#include "dpwa/kvstore/saved_states.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/worker_engine.h"
#include "test/dpwa/kvstore/shard.h"
#include "test/support/broken_invariant.h"

namespace dpwa {

template <>
struct InvariantTest<kvstore::EpochEngine> {
  static void accept_more(kvstore::EpochEngine& engine) {
    engine.accepted_ballot_ = ~std::uint64_t{0};
  }
  static void ask_for_votes(kvstore::EpochEngine& engine) { engine.ask_for_votes({}); }
  static void promise_all(kvstore::EpochEngine& engine) { engine.promised_ = 0; }
};

template <>
struct InvariantTest<kvstore::MemoryBound> {
  static std::uint64_t& bytes(kvstore::MemoryBound& bound) { return bound.bytes_; }
};

template <>
struct InvariantTest<kvstore::Round> {
  static void weigh(kvstore::Round round) {
    round.weight_ = -1;
    round.close(0);
  }
  static void leave_out(kvstore::Round round) {
    round.lent_.emplace_back();
    round.leave_out([](const auto&) { return true; });
  }
};

template <>
struct InvariantTest<kvstore::ShardEngine> {
  using Held = kvstore::ShardEngine::Held;
  explicit InvariantTest(kvstore::ShardEngine& of) : engine(of) {}

  kvstore::ShardEngine::Entry& entry() { return *engine.slices_.begin(); }
  Held& held() { return entry().second; }
  void add_byte() { ++InvariantTest<kvstore::MemoryBound>::bytes(engine.memory_); }
  void send_copy() { engine.send_copy(entry(), {}); }
  void wait_for_unknown() {
    engine.newcomers_[{{kvstore::Key("unknown"), 0}, "w1"}] = {};
    engine.answer_newcomers();
  }
  void lose_sync() {
    held().backup = kvstore::ShardEngine::Backup::syncing;
    engine.syncing_ = 0;
  }
  void close(std::uint64_t step) { engine.close(entry(), step, {}); }
  void close_behind() {
    held().round = 10;
    close(9);
  }
  void update(const kvstore::Advance& by) {
    kvstore::Forward change;
    change.advances = {by};
    engine.update(entry(), std::move(change), {}, {});
  }
  void apply(std::uint64_t version) {
    kvstore::Forward change;
    change.version = version;
    engine.apply(held(), change);
  }
  void lose_element() {
    ++held().elements;
    engine.count_bytes(held());
  }
  void capture_again() { held().capture.begin(held(), held().snapshot); }

  kvstore::ShardEngine& engine;
};

template <>
struct InvariantTest<kvstore::Compressor> {
  static void forget_residual(kvstore::Compressor& compressor) { compressor.residual_.clear(); }
};

template <>
struct InvariantTest<kvstore::WorkerEngine> {
  explicit InvariantTest(kvstore::WorkerEngine& of) : engine(of) {}

  std::uint64_t tag() { return engine.requests_.begin()->first; }
  kvstore::WorkerEngine::Request& request() { return engine.requests_.begin()->second; }
  void move_away() {
    request().queue = 99;
    engine.dequeue(tag(), request());
  }
  void leave_queue() {
    for (auto& kinds : engine.queues_)
      for (auto& queue : kinds) queue.clear();
    engine.dequeue(tag(), request());
  }
  void count_as_sent() {
    request().state = kvstore::WorkerEngine::State::sent;
    engine.change(tag(), request(), kvstore::WorkerEngine::State::received);
  }
  void send_again() {
    request().state = kvstore::WorkerEngine::State::received;
    engine.send(tag(), request(), "s1", {});
  }
  void leave_line() {
    request().slice->line.clear();
    engine.erase(engine.requests_.begin());
  }
  void take_for_push() {
    engine.pushes_.push_front(tag());
    engine.first_push();
  }

  kvstore::WorkerEngine& engine;
};

namespace kvstore {
namespace {

using test::breaks;
using testing::Shard;

const ValueSpec spec{DType::float64, {1}};

// A primary whose backup is s2.
struct Pair {
  Pair() : engine(rules_of(KvstoreType::dist_sync, 0, true), name) {
    Epoch epoch{7, {{{"s1", 1}, ServerState::up}, {{"s2", 1}, ServerState::up}}, {{{"w1", 1}, 0}}};
    engine.install(epoch, {});
    for (std::int64_t key = 0; engine.size() == 0; ++key) {
      engine.receive({"w1", 1}, 1, Init{7, {Key(key), 0}, spec, testing::bytes_of({0})}, {});
      slice = {Key(key), 0};
    }
  }

  const std::string name = "s1";
  ShardEngine engine;
  SliceId slice;
};

TEST_CASE("slices are those of some servers, and have two holders") {
  CHECK(breaks("a value is cut for some servers", [] { cut_into_slices(Key(1), 10, 0); }));
  CHECK(breaks("a part is that of one of the servers", [] { elements_at(Key(1), 10, 2, 2); }));
  CHECK(breaks("a slice is at one of some servers", [] { slice_at(Key(1), 10, 0, 0); }));
  CHECK(breaks("a slice is at home at one of the servers", [] { holders_of({}, 0, true); }));
}

TEST_CASE("epochs and ballots ascend") {
  const MemberId self{"s1", 1};
  EpochEngine engine(self, {"s1", "s2"}, Duration(1));
  Epoch next = engine.installed();
  next.number = 5;
  engine.propose(next, {});
  next.number = 0;
  CHECK(breaks("epochs are proposed in ascending order", [&] { engine.amend(next); }));
  EpochEngine idle(self, {"s1", "s2"}, Duration(1));
  CHECK(breaks("a majority promises a ballot once",
               [&] { InvariantTest<EpochEngine>::ask_for_votes(idle); }));
  InvariantTest<EpochEngine>::accept_more(engine);
  CHECK(breaks("an accepted ballot was promised",
               [&] { engine.receive({"s2", 1}, Ballot{0, 1}, {}); }));
  next.number = 6;
  InvariantTest<EpochEngine>::promise_all(engine);
  CHECK(breaks("ballots are accepted in ascending order",
               [&] { engine.receive({"s2", 1}, Proposal{0, 1, next}, {}); }));
}

TEST_CASE("a slice that is changed has values, and its gradient has their elements") {
  Forward change;
  change.gradient = testing::bytes_of({1, 2});
  SliceState state;
  CHECK(breaks("a slice that is changed has values", [&] { state.apply(DType::float64, change); }));
  state.values = std::make_shared<Bytes>(testing::bytes_of({1}));
  CHECK(breaks("a gradient has the elements of its slice",
               [&] { state.apply(DType::float64, change); }));
}

TEST_CASE("a shard counts its bytes") {
  Shard shard;
  InvariantTest<ShardEngine> inside(shard.engine);
  CHECK(breaks("epochs are installed in ascending order", [&] { shard.install(7, {}); }));
  CHECK(breaks("each epoch has all servers", [&] { shard.engine.install({8, {}, {}}, {}); }));
  CHECK(breaks("a slice has all its values", [&] { inside.lose_element(); }));
  inside.add_byte();
  CHECK(breaks("the bytes of a server are those of its slices", [&] { shard.install(8, {}); }));
  CHECK(breaks("the bytes of a slice are counted", [] { MemoryBound("s1", 0).recount(1, 0); }));
  ShardRules stale;
  stale.staleness = 1;
  CHECK(breaks("merged pushes are never stale", [&] { ShardEngine(stale, "s1"); }));
}

TEST_CASE("a shard closes rounds in order, and counts each push once") {
  Shard shard;
  InvariantTest<ShardEngine> inside(shard.engine);
  CHECK(breaks("a round that is closed is open", [&] { inside.close(3); }));
  CHECK(breaks("rounds are closed in order", [&] { inside.close_behind(); }));
  CHECK(breaks("a sum of weights is not negative", [] { InvariantTest<Round>::weigh(Round({})); }));
  CHECK(breaks("a part that is left out was counted",
               [] { InvariantTest<Round>::leave_out(Round({})); }));
  inside.update({{"w1", 1}, 4});
  CHECK(breaks("a push is counted once", [&] { inside.update({{"w1", 1}, 4}); }));
  CHECK(breaks("a version follows each change", [&] { inside.apply(inside.held().version); }));
  CHECK(breaks("a version follows each change", [&] { inside.apply(inside.held().version + 2); }));
}

TEST_CASE("a shard waits for slices that it has, and for backups that there are") {
  Shard alone;
  InvariantTest<ShardEngine> inside(alone.engine);
  CHECK(breaks("a slice that something waits for is here", [&] { inside.wait_for_unknown(); }));
  CHECK(breaks("a slice that is stored elsewhere has a backup", [&] { inside.send_copy(); }));
  CHECK(breaks("snapshots of a slice begin in ascending order", [&] { inside.capture_again(); }));

  PendingUpdates pending;
  CHECK(breaks("what is waited for is not stored yet", [&] { pending.wait({}); }));
  pending.add(2, 0, {});
  CHECK(breaks("the backup stores versions in ascending order", [&] { pending.add(2, 0, {}); }));

  Pair pair;
  InvariantTest<ShardEngine> primary(pair.engine);
  primary.lose_sync();
  CHECK(breaks("a slice that is being synced is counted", [&] {
    pair.engine.receive({"s2", 1}, Stored{7, pair.slice, primary.held().version}, {});
  }));
}

TEST_CASE("a shard is restored before its first epoch, with all values of a slice") {
  SliceState state;
  state.values = std::make_shared<Bytes>(testing::bytes_of({1}));
  Shard running;
  CHECK(breaks("slices are restored before the first epoch",
               [&] { running.engine.restore({Key(1), 0}, spec, 1, state); }));
  ShardEngine fresh(rules_of(KvstoreType::dist_sync), "s1");
  state.values = std::make_shared<Bytes>(testing::bytes_of({1, 2}));
  CHECK(breaks("a slice is restored with all its values",
               [&] { fresh.restore({Key(1), 0}, spec, 1, state); }));
}

TEST_CASE("a server loads one snapshot") {
  ServerEngineOptions options;
  options.snapshots = true;
  ServerEngine server(options, {"s1", 1}, {"s1"}, {});
  server.load({}, {});
  CHECK(breaks("a server loads one snapshot", [&] { server.load({}, {}); }));
}

TEST_CASE("each request of a worker is in one queue, one line, and one window") {
  const auto broken = [](const char* words, auto body) {
    WorkerEngine worker({}, {"w1", 1}, {"s1"});
    worker.init(Key(1), spec, {});
    InvariantTest<WorkerEngine> inside(worker);
    CHECK(breaks(words, [&] { body(inside); }));
  };
  using Inside = InvariantTest<WorkerEngine>;
  broken("a request waits for one of the servers", [](Inside& inside) { inside.move_away(); });
  broken("a request is in the queue that it says", [](Inside& inside) { inside.leave_queue(); });
  broken("a request that was sent counts in the window of its server",
         [](Inside& inside) { inside.count_as_sent(); });
  broken("what is sent was queued", [](Inside& inside) { inside.send_again(); });
  broken("a request is in the line of its slice once", [](Inside& inside) { inside.leave_line(); });
  broken("the pushes under way are pushes", [](Inside& inside) { inside.take_for_push(); });
}

TEST_CASE("a compressor has a residual, and a saved state those of its elements") {
  Compressor compressor({.type = Compression::fp16}, DType::float32, 2);
  InvariantTest<Compressor>::forget_residual(compressor);
  std::vector<std::byte> gradient(8), out(4);
  CHECK(breaks("each element has a residual", [&] { compressor.compress(gradient, out); }));
  SavedStates states;
  states.options = default_options(OptimizerKind::adam);
  states.ranges.push_back({Key(1), DType::float32, {0, 4}, {}});
  states.ranges[0].state = OptimizerState(states.options, DType::float32, 2);
  CHECK(breaks("a saved state is that of its elements",
               [&] { state_of_range(states, Key(1), DType::float32, {0, 4}); }));
}

// Such a version would be followed by version 0.
TEST_CASE("a copy of a slice with a version that no run reaches is refused") {
  Copy copy;
  copy.spec = spec;
  copy.values = std::make_shared<Bytes>(testing::bytes_of({1}));
  copy.version = std::uint64_t{1} << 61;
  CHECK(state_of(copy, 1));
  for (const std::uint64_t version :
       {std::uint64_t{1} << 62, std::numeric_limits<std::uint64_t>::max()}) {
    copy.version = version;
    CHECK_FALSE(state_of(copy, 1));
  }
}

}  // namespace
}  // namespace kvstore
}  // namespace dpwa
