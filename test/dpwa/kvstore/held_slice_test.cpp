// The parts of a slice that a server holds.
#include "dpwa/kvstore/held_slice.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "dpwa/kvstore/memory_bound.h"
#include "dpwa/kvstore/newcomers.h"
#include "dpwa/kvstore/optimizer.h"
#include "test/dpwa/kvstore/doubles.h"
#include "test/dpwa/kvstore/workers.h"

namespace dpwa::kvstore {
namespace {

using testing::bytes_of;
using testing::doubles_of;

using testing::w1;
using testing::w2;

Epoch epoch_of(std::vector<WorkerEntry> workers) {
  return {7, {{{"s1", 1}, ServerState::up}}, std::move(workers)};
}

SliceState state_of_one() {
  SliceState state;
  state.values = std::make_shared<Bytes>(bytes_of({0}));
  return state;
}

// As a push that adds one. The snapshot is the last that its worker knew of.
Forward plus_one(const MemberId& worker, std::uint64_t next, std::uint32_t snapshot) {
  Forward change;
  OptimizerOptions options = default_options(OptimizerKind::sgd);
  options.learning_rate = 1;
  const OptionsBytes form = encode(options);
  change.optimizer = {form.begin(), form.end()};
  change.gradient = bytes_of({-1});
  change.advances = {{worker, next}};
  change.snapshot = snapshot;
  return change;
}

}  // namespace

TEST_CASE("a capture has the pushes from before the snapshot, and none after it") {
  const Epoch epoch = epoch_of({{w1, 0}, {w2, 0}});
  SnapshotCut cut;
  CHECK(cut.announce(1));
  CHECK_FALSE(cut.announce(1));
  SliceState state = state_of_one();
  SliceCapture capture;
  const auto push = [&](const MemberId& worker, std::uint64_t next, std::uint32_t snapshot) {
    Forward change = plus_one(worker, next, snapshot);
    change.version = state.version + 1;
    if (snapshot > state.snapshot) capture.begin(state, snapshot);
    state.apply(DType::float64, change);
    capture.note(DType::float64, change, /*merged=*/false);
  };
  push(w1, 1, 0);
  CHECK_FALSE(capture.is_under_way());
  push(w1, 2, 1);  // knew of it
  push(w2, 1, 0);  // did not
  CHECK(capture.is_under_way());
  CHECK_FALSE(capture.is_complete(epoch, cut, false));
  SUBCASE("the other one pushes past it") {
    push(w2, 2, 1);
  }
  SUBCASE("the other one says that it is past it") {
    CHECK(cut.passed(w2, 1));
    CHECK_FALSE(cut.all_past(epoch));
  }
  SUBCASE("the other one is gone") {
    CHECK(capture.is_complete(epoch_of({{w1, 0}}), cut, false));
  }
  CHECK(capture.is_complete(epoch_of({{w1, 0}}), cut, false));
  const SliceCapture::Taken taken = capture.take();
  CHECK(taken.number == 1);
  CHECK(doubles_of(*taken.state.values).at(0) == 2);
  CHECK(taken.state.version == 3);
  CHECK_FALSE(capture.is_under_way());
}

TEST_CASE("a newcomer begins once no push of an earlier step can come, or after a time") {
  const TimePoint now{};
  const WorkerEntry old{w1, 0, 3};
  const WorkerEntry fresh{w2, 0, 7};
  const Epoch epoch = epoch_of({old, fresh});
  Newcomers newcomers;
  newcomers.install(epoch, now);
  CHECK(newcomers.may_begin(epoch, {w1, 0, 0}));  // does not count each key apart
  CHECK_FALSE(newcomers.may_begin(epoch, fresh));
  SUBCASE("told") {
    CHECK(newcomers.passed(w1, 6));
    CHECK_FALSE(newcomers.may_begin(epoch, fresh));
    CHECK(newcomers.passed(w1, 7));
    CHECK_FALSE(newcomers.passed(w1, 7));
  }
  SUBCASE("in vain") {
    CHECK_FALSE(newcomers.end_patience(now + std::chrono::seconds(9)));
    CHECK(newcomers.end_patience(now + std::chrono::seconds(10)));
    CHECK_FALSE(newcomers.end_patience(now + std::chrono::seconds(20)));
  }
  CHECK(newcomers.may_begin(epoch, fresh));
}

TEST_CASE("updates are answered in the order in which the backup stores them") {
  PendingUpdates pending;
  pending.add(2, 5, {{"w1", 1}});
  pending.add(3, 6, {{"w2", 2}});
  pending.wait({"w1", 9});  // sent again
  CHECK(pending.round_before() == 5);
  CHECK(pending.stored(2).empty());
  CHECK(pending.round_before() == 6);
  const auto last = pending.stored(4);
  REQUIRE(last.size() == 2);
  CHECK(last[0].worker == "w2");
  CHECK(last[1].tag == 9);
  CHECK(pending.empty());
  CHECK_FALSE(pending.round_before());
}

TEST_CASE("a server without room says what it holds and what it may hold") {
  MemoryBound memory("s1", 1000);
  const std::uint64_t counted = memory.recount(0, 600);
  CHECK_FALSE(memory.shortage(400));
  CHECK(*memory.shortage(401) ==
        "server s1 holds 600 bytes, and 401 more are beyond its bound of 1000; accepted: a larger "
        "kvstore.memory_bytes, or more servers");
  memory.recount(counted, 100);
  CHECK_FALSE(memory.shortage(900));
  CHECK_FALSE(MemoryBound("s1", 0).shortage(1ULL << 60));
}

TEST_CASE("without merged pushes a worker that comes begins where the slowest one is") {
  HeldSlice held;
  held.clocks = {{"w1", {w1, 4}}};
  held.acknowledged = {{"w1", {w1, 3}}};
  const Epoch epoch = epoch_of({{w1, 0, 3}, {w2, 0, 7}});
  CHECK(held.step_for(epoch, "w2", false) == 4);
  CHECK(held.acknowledged_clock(epoch, false) == 3);  // nobody waits for w2 yet
  held.note_begin(epoch, w2, 2);
  CHECK(held.acknowledged_clock(epoch, false) == 2);
  held.note_begin(epoch, w1, 1);  // has pushed
  CHECK(held.begins.size() == 1);
}

TEST_CASE("without merged pushes a worker that comes back begins where the others are") {
  HeldSlice held;
  held.clocks = {{"w1", {w1, 100}}, {"w2", {w2, 4}}};
  const Epoch epoch = epoch_of({{w1, 0, 3}, {w2, 0, 7}});
  CHECK(held.step_for(epoch, "w2", false) == 100);
  CHECK(held.step_for(epoch, "w1", false) == 100);  // its own is the later one
  CHECK(held.step_for(epoch_of({{w2, 0, 7}}), "w2", false) == 4);
}

}  // namespace dpwa::kvstore
