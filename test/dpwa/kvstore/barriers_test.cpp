#include "dpwa/kvstore/barriers.h"

#include <doctest/doctest.h>

#include "dpwa/kvstore/worker_engine.h"
#include "test/dpwa/kvstore/workers.h"

namespace dpwa::kvstore {
namespace {

using Passed = std::vector<std::pair<std::string, std::uint64_t>>;

Epoch epoch_of(std::vector<MemberId> workers) {
  Epoch epoch{7, {{{"s0", 1}, ServerState::up}}, {}};
  for (MemberId& worker : workers) epoch.workers.push_back({std::move(worker), 0});
  return epoch;
}

using testing::w0;
using testing::w1;

TEST_CASE("a barrier is passed when all workers have come to it, and each is told once") {
  Barriers barriers;
  const Epoch both = epoch_of({w0, w1});
  barriers.reached(w0, 1, true);
  CHECK(barriers.take_passed(both).empty());
  barriers.reached(w1, 1, true);
  CHECK(barriers.take_passed(both) == Passed{{"w0", 1}, {"w1", 1}});
  CHECK(barriers.take_passed(both).empty());
  // Its answer was lost, so it asks again.
  barriers.reached(w0, 1, true);
  CHECK(barriers.take_passed(both) == Passed{{"w0", 1}});
  // One that only tells how far it is waits for no answer.
  barriers.reached(w0, 1, false);
  CHECK(barriers.take_passed(both).empty());
}

TEST_CASE("a worker that is left out holds up no barrier, and one that joins does") {
  Barriers barriers;
  barriers.reached(w0, 1, true);
  CHECK(barriers.take_passed(epoch_of({w0, w1})).empty());
  CHECK(barriers.take_passed(epoch_of({w0})) == Passed{{"w0", 1}});
  barriers.reached(w0, 2, true);
  CHECK(barriers.take_passed(epoch_of({w0, w1})).empty());
  CHECK(barriers.take_passed(epoch_of({})).empty());
}

TEST_CASE("a program that begins anew passes the barriers that the others are past") {
  Barriers barriers;
  for (std::uint64_t count : {1, 2, 3}) {
    barriers.reached(w0, count, count < 3);
    barriers.reached(w1, count, count < 3);
  }
  const MemberId again{"w1", 2};
  const Epoch epoch = epoch_of({w0, again});
  barriers.reached(w0, 4, true);
  CHECK(barriers.take_passed(epoch).empty());
  barriers.reached(again, 1, true);
  CHECK(barriers.take_passed(epoch) == Passed{{"w1", 1}});
  barriers.reached(w1, 9, true);  // of the process that has ended
  CHECK(barriers.take_passed(epoch).empty());
  for (std::uint64_t count : {2, 3, 4}) barriers.reached(again, count, true);
  CHECK(barriers.take_passed(epoch) == Passed{{"w0", 4}, {"w1", 4}});
}

TEST_CASE("a message that was overtaken takes no barrier back") {
  Barriers barriers;
  barriers.reached(w0, 2, true);
  barriers.reached(w0, 1, true);
  CHECK(barriers.take_passed(epoch_of({w0})) == Passed{{"w0", 2}});
}

// --- the worker's side

std::vector<Barrier> told(WorkerEngine& engine, TimePoint now) {
  std::vector<Barrier> all;
  for (const Outgoing& each : engine.take(now)) {
    if (const auto* barrier = std::get_if<Barrier>(&each.message)) all.push_back(*barrier);
  }
  return all;
}

TEST_CASE("a worker tells its barrier at once and with every beat, and passes it in its epoch") {
  WorkerEngine engine({}, w0, {"s0"});
  TimePoint now{};
  engine.tick(now);
  CHECK(told(engine, now).empty());
  engine.receive({"s0", 1}, 0, EpochNews{epoch_of({w0, w1})}, now);
  engine.take_events();
  engine.reach_barrier();
  CHECK(told(engine, now) == std::vector<Barrier>{{7, 1, true}});
  now += std::chrono::seconds(1);
  engine.tick(now);
  CHECK(told(engine, now) == std::vector<Barrier>{{7, 1, true}});

  engine.receive({"s0", 1}, 0, Barrier{6, 1, false}, now);
  CHECK(engine.take_events().empty());
  engine.receive({"s0", 1}, 0, Barrier{7, 1, false}, now);
  engine.receive({"s1", 1}, 0, Barrier{7, 1, false}, now);
  const auto events = engine.take_events();
  REQUIRE(events.size() == 1);
  CHECK(std::get<WorkerEngine::Passed>(events[0]).barriers == 1);
  now += std::chrono::seconds(1);
  engine.tick(now);
  CHECK(told(engine, now) == std::vector<Barrier>{{7, 1, false}});
}

}  // namespace
}  // namespace dpwa::kvstore
