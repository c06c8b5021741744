#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/kvstore/member_watch.h"
#include "dpwa/kvstore/shard_engine.h"
#include "dpwa/kvstore/worker_engine.h"
#include "test/dpwa/kvstore/shard.h"
#include "test/dpwa/kvstore/workers.h"

// Workers that come while others train, where each counts the steps of its keys apart: in which
// rounds they take part, and when a step of a program is over.

namespace dpwa::kvstore {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using testing::Shard;

const MemberId server = testing::server_of_shard;
using testing::w1;
using testing::w2;
using testing::w3;

TEST_CASE("a worker that comes takes part in all keys from one step of the others on") {
  Shard shard;
  shard.push(w1, 1, 0, 7);
  CHECK(shard.round(1) == 1);
  shard.install(8, {{w1, 0, 7}, {w2, 0, 8}});
  SUBCASE("it hears where to begin once the others have sent the last pushes of earlier steps") {
    CHECK(shard.init(w2, 1, 21).empty());
    CHECK(shard.init(w2, 2, 22).empty());
    CHECK(shard.init(w2, 2, 22).empty());  // sent again
    shard.engine.passed_epoch(w1, 7);
    CHECK(shard.answers().empty());
    // The second key of the step that began before it came.
    shard.push(w1, 2, 0, 7);
    CHECK(shard.round(2) == 1);
    shard.engine.passed_epoch(w1, 8);
    const auto answers = shard.answers();
    REQUIRE(answers.size() == 2);
    CHECK(answers.at(21).step == 1);
    CHECK(answers.at(22).step == 1);
    // The next step of the other waits for it.
    for (const int key : {1, 2}) {
      shard.push(w1, key, 1, 8);
      CHECK(shard.round(key) == 1);
      shard.push(w2, key, 1, 8);
      CHECK(shard.round(key) == 2);
    }
  }
  SUBCASE("so do its pulls, when it comes back") {
    shard.engine.receive(w2, 30, Pull{8, {Key(2), 0}, 0, any_version}, shard.now);
    CHECK(shard.answers().empty());
    shard.push(w1, 2, 0, 7);
    shard.engine.passed_epoch(w1, 8);
    CHECK(shard.answers().at(30).step == 1);
  }
  SUBCASE("when one of the others is lost meanwhile, it waits for those that are left") {
    shard.install(9, {{w2, 0, 8}});
    CHECK(shard.init(w2, 2, 22).at(22).step == 0);
  }
  SUBCASE("after ten seconds it begins with the rounds that are open") {
    shard.engine.tick(shard.now += seconds(6));
    // Another change of members does not begin them anew.
    shard.install(9, {{w1, 0, 7}, {w2, 0, 8}, {w3, 0, 9}});
    CHECK(shard.init(w2, 2, 22).empty());
    CHECK(shard.init(w3, 2, 23).empty());
    shard.engine.tick(shard.now += milliseconds(3'999));
    CHECK(shard.answers().empty());
    shard.engine.tick(shard.now += milliseconds(1));
    const auto answers = shard.answers();
    CHECK(answers.at(22).step == 0);
    CHECK(answers.size() == 1);
  }
}

TEST_CASE("nobody waits for a newcomer in a step that another worker began before it came") {
  Shard shard;
  shard.install(8, {{w1, 0, 7}, {w2, 0, 8}});
  shard.engine.passed_epoch(w1, 8);
  CHECK(shard.init(w2, 1).size() == 1);
  shard.install(9, {{w1, 0, 7}, {w2, 0, 8}, {w3, 0, 9}});
  CHECK(shard.init(w3, 1, 31).empty());
  // One of them began the step before it heard of w3, the other one after.
  shard.push(w2, 1, 0, 9);
  CHECK(shard.round(1) == 0);
  shard.engine.passed_epoch(w2, 9);
  SUBCASE("the round is over") {
    shard.push(w1, 1, 0, 8);
    CHECK(shard.round(1) == 1);
    shard.engine.passed_epoch(w1, 9);
    CHECK(shard.answers().at(31).step == 1);
  }
  SUBCASE("the round is open") {
    shard.push(w1, 1, 1, 8);  // with this the first round is over, and the second one open
    shard.engine.passed_epoch(w1, 9);
    CHECK(shard.answers().at(31).step == 2);
  }
}

TEST_CASE("workers that begin a run together do not wait for one another's steps") {
  Shard shard;
  shard.install(8, {{w1, 0, 8}, {w2, 0, 8}});
  CHECK(shard.init(w2, 1, 21).contains(21));
}

TEST_CASE("the epoch names since when a worker takes part that counts each key apart") {
  for (const bool own_steps : {false, true}) {
    MemberWatch watch({}, server, {});
    const Epoch current{7, {{server, ServerState::up}}, {{w1, 0, own_steps ? 7U : 0U}}};
    watch.installed(current, {});
    Beat beat;
    beat.epoch = 7;
    beat.joins = true;
    beat.own_steps = own_steps;
    for (const MemberId& worker : {w1, w2}) watch.heard(worker, beat, {});
    Beat own;
    own.epoch = 7;
    const auto next = watch.successor(current, own, {});
    REQUIRE(next);
    REQUIRE(next->worker("w2") != nullptr);
    CHECK(next->worker("w2")->since == (own_steps ? next->number : 0));
  }
}

// Two workers that count the steps of each key apart, as a server knows them from their beats.
struct Watch {
  Watch() {
    watch.installed(current, start);
    for (Beat* beat : {&first, &second}) {
      beat->epoch = 7;
      beat->joins = beat->own_steps = true;
      beat->longest_step_us = 1000;
    }
  }
  // Beats for so long; what the server then proposes.
  std::optional<Epoch> after(seconds time) {
    const TimePoint until = now + time;
    while (now < until) {
      now += milliseconds(100);
      watch.heard(w1, first, now);
      watch.heard(w2, second, now);
    }
    Beat own;
    own.epoch = 7;
    return watch.successor(current, own, now);
  }

  const TimePoint start{};
  TimePoint now = start;
  const Epoch current{7, {{server, ServerState::up}}, {{w1, 0, 7}, {w2, 0, 7}}};
  MemberWatch watch{{}, server, start};
  Beat first;
  Beat second;
};

TEST_CASE("a program that does something else for long hangs once others have waited as long") {
  Watch watch;
  watch.second.clock = 40;  // nobody waits because of that
  CHECK_FALSE(watch.after(seconds(30)));
  watch.second.waiting = true;
  CHECK_FALSE(watch.after(seconds(1)));
  SUBCASE("it goes on") {
    watch.first.active = true;
    CHECK_FALSE(watch.after(seconds(30)));
  }
  SUBCASE("it does not") {
    const auto next = watch.after(seconds(2));
    REQUIRE(next);
    CHECK(next->worker("w1") == nullptr);
    CHECK(next->left.empty());
  }
}

TEST_CASE("a worker that has said that it leaves has left, also when it ends before it was heard") {
  Watch watch;
  watch.first.joins = false;
  watch.after(seconds(1));
  const Epoch later{9, watch.current.servers, watch.current.workers};
  watch.watch.installed(later, watch.now);
  watch.watch.lost(w1, watch.now);
  Beat own;
  own.epoch = 9;
  const auto next = watch.watch.successor(later, own, watch.now);
  REQUIRE(next);
  CHECK(next->worker("w1") == nullptr);
  CHECK(next->left == std::vector<std::string>{"w1"});
}

// A worker with steps of its own that takes part, and its one key.
struct Worker {
  Worker() {
    engine.join();
    install(7);
    engine.init(key, {DType::float32, {1}}, {});
    for (const Outgoing& each : engine.take(now)) {
      if (std::holds_alternative<Init>(each.message)) answer(each.tag, AnswerKind::created, 0);
    }
  }
  void install(std::uint64_t number) {
    const Epoch epoch{number, {{server, ServerState::up}}, {{w1, 0, 7}}};
    engine.receive(server, 0, EpochNews{epoch}, now);
  }
  void answer(std::uint64_t tag, AnswerKind kind, std::uint32_t snapshot) {
    const std::uint64_t epoch = engine.epoch().number;
    engine.receive(server, tag, Answer{epoch, {key, 0}, kind, 0, 1, nullptr, {}, snapshot}, now);
  }
  Outgoing push(std::uint64_t step) {
    Push push;
    push.slice = {key, 0};
    push.step = step;
    engine.push(std::move(push));
    for (Outgoing& each : engine.take(now)) {
      if (std::holds_alternative<Push>(each.message)) return std::move(each);
    }
    return {};
  }
  void tick(Duration after) {
    engine.tick(now += after);
    engine.take(now);
  }

  const Key key{1};
  TimePoint now{};
  WorkerEngine engine{{.own_steps = true}, w1, {"s1"}};
};

TEST_CASE("the pushes of a step state the epoch in which it began, until it is over") {
  Worker worker;
  CHECK(worker.engine.past_epoch() == 7);
  worker.engine.begin_step();
  const Outgoing first = worker.push(0);
  CHECK(std::get<Push>(first.message).begun_in == 7);
  worker.answer(first.tag, AnswerKind::counted, 3);
  worker.install(8);
  CHECK(worker.engine.past_epoch() == 7);
  CHECK(worker.engine.past_snapshot() == 0);
  SUBCASE("by the begin of the next") {
    worker.engine.begin_step();
    CHECK(std::get<Push>(worker.push(1).message).begun_in == 8);
  }
  SUBCASE("at a barrier, where nothing is pushed") {
    worker.engine.reach_barrier();
    const Outgoing second = worker.push(1);
    CHECK(std::get<Push>(second.message).begun_in == 8);
    CHECK(std::get<Push>(second.message).snapshot == 3);
  }
  SUBCASE("by a pause without pushes") {
    worker.tick({});
    worker.tick(milliseconds(1'999));
    CHECK(worker.engine.past_epoch() == 7);
    worker.tick(milliseconds(1));
  }
  SUBCASE("because it was left out") {
    const Epoch without{9, {{server, ServerState::up}}, {}};
    worker.engine.receive(server, 0, EpochNews{without}, worker.now);
    worker.install(10);
    worker.install(11);
  }
  CHECK(worker.engine.past_epoch() >= 8);
  CHECK(worker.engine.past_snapshot() == 3);
}

TEST_CASE("a worker waits once a call has taken a while, and is active when it makes calls") {
  Worker worker;
  const auto beat = [&](Duration after) {
    worker.engine.tick(worker.now += after);
    for (const Outgoing& each : worker.engine.take(worker.now)) {
      if (const Beat* found = std::get_if<Beat>(&each.message)) return *found;
    }
    return Beat{};
  };
  worker.engine.at(1, false, worker.now);
  CHECK(beat(milliseconds(250)).active);
  CHECK_FALSE(beat(milliseconds(250)).active);
  worker.engine.at(1, true, worker.now + milliseconds(200));
  Beat sent = beat(milliseconds(250));
  CHECK(sent.active);
  CHECK_FALSE(sent.waiting);
  sent = beat(milliseconds(250));
  CHECK_FALSE(sent.active);
  CHECK(sent.waiting);
}

TEST_CASE("a worker that sends no requests hears of a snapshot because of its beats") {
  Worker worker;
  worker.answer(0, AnswerKind::snapshot_begun, 4);
  CHECK(worker.engine.past_snapshot() == 4);
  CHECK(worker.engine.take_events().size() == 2);  // it joined, and its key was made
}

TEST_CASE("a pause while a push is under way is none") {
  Worker worker;
  worker.engine.begin_step();
  const Outgoing push = worker.push(0);
  worker.install(8);
  worker.tick({});
  worker.tick(seconds(20));
  CHECK(worker.engine.past_epoch() == 7);
  worker.answer(push.tag, AnswerKind::counted, 0);
  worker.tick(milliseconds(1'999));
  CHECK(worker.engine.past_epoch() == 7);
  worker.tick(milliseconds(1));
  CHECK(worker.engine.past_epoch() == 8);
}

}  // namespace
}  // namespace dpwa::kvstore
