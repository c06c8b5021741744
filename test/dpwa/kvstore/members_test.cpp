#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "dpwa/kvstore/member_watch.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/worker_engine.h"
#include "test/dpwa/kvstore/workers.h"

// Who is taken in: settings that all need alike, and names that another process has.

namespace dpwa::kvstore {
namespace {

using std::chrono::milliseconds;

const Settings sync{{"kvstore.type", "dist_sync"}, {"kvstore.update", "server"}};
const Settings async{{"kvstore.type", "dist_async"}, {"kvstore.update", "server"}};
const MemberId s1{"s1", 1};
using testing::w1;
using testing::w2;

TimePoint at(int ms) {
  return TimePoint{} + milliseconds(ms);
}

Epoch epoch_of(std::uint64_t number, const std::vector<MemberId>& workers) {
  Epoch epoch{number, {{s1, ServerState::up}}, {}};
  for (const MemberId& worker : workers) epoch.workers.push_back({worker, 0});
  return epoch;
}

Beat beat_of(std::uint64_t epoch, std::uint64_t clock = 0, bool joins = true) {
  Beat beat;
  beat.epoch = epoch;
  beat.clock = clock;
  beat.joins = joins;
  return beat;
}

ServerEngineOptions options_with(Settings settings) {
  ServerEngineOptions options;
  options.settings = std::move(settings);
  return options;
}

}  // namespace

TEST_CASE("a worker with other settings is not taken in, and told why") {
  ServerEngine server(options_with(sync), s1, {"s1"}, at(0));
  WorkerOptions options;
  options.settings = async;
  WorkerEngine worker(options, w1, {"s1"});
  worker.join();
  worker.tick(at(0));
  for (Outgoing& each : worker.take(at(0))) server.receive(w1, 0, std::move(each.message), at(1));
  server.tick(at(2));
  CHECK(server.epoch().number == 0);
  for (Outgoing& each : server.take()) worker.receive(s1, each.tag, std::move(each.message), at(3));
  const auto events = worker.take_events();
  REQUIRE(events.size() == 1);
  const auto& refused = std::get<WorkerEngine::Refused>(events[0]);
  CHECK(refused.kind == AnswerKind::other_settings);
  CHECK(refused.problem ==
        "kvstore.type: dist_sync on 's1' and dist_async on 'w1'; accepted: the same on all nodes "
        "and servers");
  CHECK(server.take_complaints().size() == 1);
  CHECK(!server.refusal());
}

TEST_CASE("a worker with the same settings is taken in") {
  ServerEngine server(options_with(sync), s1, {"s1"}, at(0));
  Beat beat = beat_of(0);
  beat.settings = sync;
  server.receive(w1, 0, beat, at(1));
  server.tick(at(2));
  CHECK(server.epoch().worker("w1") != nullptr);
}

TEST_CASE("of two servers with other settings none begins, and a newcomer ends") {
  ServerEngine server(options_with(sync), s1, {"s1", "s2"}, at(0));
  Beat beat;
  beat.settings = async;
  server.receive({"s2", 1}, 0, beat, at(1));
  REQUIRE(server.refusal());
  CHECK(server.refusal()->find("'s2'") != std::string::npos);
}

TEST_CASE("a server that takes part goes on beside one with other settings") {
  ServerEngineOptions options = options_with(sync);
  options.shard.replicas = true;
  ServerEngine server(options, s1, {"s1", "s2"}, at(0));
  Epoch epoch = epoch_of(7, {w1});
  epoch.servers.push_back({{"s2", 1}, ServerState::down});
  server.receive(w1, 0, EpochNews{epoch}, at(1));
  Beat beat;
  beat.settings = async;
  for (int i = 0; i < 3; ++i) server.receive({"s2", 2}, 0, beat, at(2 + i));
  server.receive(w1, 0, beat_of(7), at(5));
  server.tick(at(6));
  CHECK(!server.refusal());
  CHECK(server.take_complaints().size() == 1);
  CHECK(server.epoch().servers[1].state == ServerState::down);
}

TEST_CASE("a second process with the name of a worker that is heard of does not take its place") {
  MemberWatch watch({}, s1, at(0));
  const Epoch current = epoch_of(7, {w1, w2});
  watch.installed(current, at(0));
  const MemberId second{"w1", 2};
  for (int ms = 0; ms < 10'000; ms += 250) {
    watch.heard(w1, beat_of(7, 3), at(ms));
    watch.heard(w2, beat_of(7, 3), at(ms));
    watch.heard(second, beat_of(7), at(ms + 100));
    CHECK(watch.is_taken(second, at(ms + 100)));
    CHECK(!watch.is_taken(w1, at(ms + 100)));
    CHECK(!watch.successor(current, Beat{}, at(ms + 100)));
  }
}

TEST_CASE("the restart of a worker that was killed is taken in once it has been silent") {
  MemberWatch watch({}, s1, at(0));
  const Epoch current = epoch_of(7, {w1, w2});
  watch.installed(current, at(0));
  watch.heard(w1, beat_of(7, 3), at(0));
  const MemberId second{"w1", 2};
  std::optional<Epoch> next;
  for (int ms = 100; ms < 5'000 && !next; ms += 100) {
    watch.heard(w2, beat_of(7, 3), at(ms));
    watch.heard(second, beat_of(7), at(ms));
    CHECK(watch.is_taken(second, at(ms)) == (ms < 2000));
    next = watch.successor(current, Beat{}, at(ms));
  }
  REQUIRE(next);
  REQUIRE(next->worker("w1") != nullptr);
  CHECK(next->worker("w1")->id == second);
}

// 150 ms between two looks, where silent_after is 200: a busy server, not one that stood still
// once.
TEST_CASE("a silent worker is left out also by a server that looks seldom") {
  WatchOptions options;
  options.silent_after = milliseconds(200);
  MemberWatch watch(options, s1, at(0));
  const Epoch current = epoch_of(7, {w1, w2});
  watch.installed(current, at(0));
  watch.heard(w1, beat_of(7, 3), at(0));
  int ms = 0;
  std::optional<Epoch> next;
  while (ms < 2'000 && !next) {
    ms += 150;
    watch.look(at(ms));
    watch.heard(w2, beat_of(7, 3), at(ms));
    next = watch.successor(current, Beat{}, at(ms));
  }
  REQUIRE(next);
  CHECK(ms == 300);
  CHECK(next->worker("w1") == nullptr);
  CHECK(next->worker("w2") != nullptr);
}

TEST_CASE("a worker that has left does not keep its name") {
  MemberWatch watch({}, s1, at(0));
  watch.heard(w1, beat_of(7, 3, /*joins=*/false), at(0));
  CHECK(!watch.is_taken({"w1", 2}, at(1)));
}

TEST_CASE("values are lost when all servers that had them were started again, not before") {
  const auto lost = [](bool replicas, const std::vector<MemberId>& heard,
                       ServerState second = ServerState::up) {
    WatchOptions options;
    options.replicas = replicas;
    MemberWatch watch(options, {"s1", 5}, at(0));
    for (const MemberId& member : heard) watch.heard(member, Beat{}, at(0));
    Epoch epoch = epoch_of(7, {w1});
    epoch.servers.push_back({{"s2", 1}, second});
    return watch.started_again(epoch);
  };
  CHECK(lost(true, {}).empty());
  CHECK(lost(true, {{"s2", 1}}).empty());
  CHECK(lost(true, {{"s2", 5}}) == std::vector<std::string>{"s1", "s2"});
  CHECK(lost(true, {}, ServerState::filling) == std::vector<std::string>{"s1"});
  CHECK(lost(false, {}) == std::vector<std::string>{"s1"});
  CHECK(lost(false, {{"s2", 1}}) == std::vector<std::string>{"s1"});
  CHECK(MemberWatch({}, {"s1", 5}, at(0)).started_again(Epoch{}).empty());
}

TEST_CASE("an epoch names the workers that have left after a step, not those that are lost") {
  MemberWatch watch({}, s1, at(0));
  Epoch current = epoch_of(7, {w1, w2, {"w3", 1}, {"w4", 1}});
  watch.installed(current, at(0));
  const TimePoint now = at(2100);  // w4 was never heard of
  watch.heard(w1, beat_of(7, 3, /*joins=*/false), now);
  watch.heard(w2, beat_of(7, 3), now);
  watch.heard({"w3", 1}, beat_of(7, 0, /*joins=*/false), now);
  auto next = watch.successor(current, Beat{}, now);
  REQUIRE(next);
  CHECK(next->left == std::vector<std::string>{"w1"});
  CHECK(next->workers.size() == 1);

  // It comes for the final weights, and leaves again without a step; then comes again and is lost.
  for (const bool is_lost : {false, true}) {
    CAPTURE(is_lost);
    Epoch with = *next;
    with.workers.insert(with.workers.begin(), {w1, 4});
    with.number = 9;
    watch.installed(with, now);
    if (!is_lost) watch.heard(w1, beat_of(9, 3, /*joins=*/false), now);
    if (is_lost) watch.lost(w1, now);
    next = watch.successor(with, Beat{}, now);
    REQUIRE(next);
    CHECK(next->left.empty() == is_lost);
  }
}

TEST_CASE("a worker at its end is a member until it leaves or is lost") {
  MemberWatch watch({}, s1, at(0));
  Epoch current = epoch_of(7, {w1, w2});
  watch.installed(current, at(0));
  Beat last = beat_of(7, 3, /*joins=*/false);
  last.at_end = true;
  watch.heard(w1, last, at(100));
  watch.heard(w2, beat_of(7, 3), at(100));
  auto next = watch.successor(current, Beat{}, at(100));
  REQUIRE(next);
  CHECK(next->at_end == std::vector{w1});
  CHECK(next->workers == std::vector<WorkerEntry>{{w2, 0}});
  CHECK(next->left == std::vector<std::string>{"w1"});
  CHECK(next->members() == 3);
  CHECK(is_majority(*next, {s1, w1}));
  CHECK(watch.is_taken({"w1", 2}, at(100)));
  current = *next;
  watch.installed(current, at(100));
  CHECK(!watch.successor(current, Beat{}, at(200)));

  SUBCASE("leaves") {
    watch.heard(w1, beat_of(8, 3, /*joins=*/false), at(200));
    next = watch.successor(current, Beat{}, at(200));
    REQUIRE(next);
    CHECK(next->at_end.empty());
    CHECK(next->left == std::vector<std::string>{"w1"});
  }
  SUBCASE("lost, and back") {
    watch.lost(w1, at(200));
    next = watch.successor(current, Beat{}, at(200));
    REQUIRE(next);
    CHECK(next->at_end.empty());
    CHECK(next->left.empty());
    watch.installed(*next, at(200));
    last.epoch = next->number;
    watch.heard(w1, last, at(1000));
    const auto with = watch.successor(*next, Beat{}, at(1000));
    REQUIRE(with);
    CHECK(with->at_end == std::vector{w1});
    CHECK(with->left == std::vector<std::string>{"w1"});
  }
}

TEST_CASE("a worker that hangs is left out also when all others wait at their end") {
  MemberWatch watch({}, s1, at(0));
  Epoch current = epoch_of(7, {w1});
  current.at_end = {w2};
  watch.installed(current, at(0));
  Beat trains = beat_of(7, 3);
  trains.longest_step_us = 1000;
  Beat last = beat_of(7, 3, /*joins=*/false);
  last.at_end = last.waiting = true;
  for (int ms = 100; ms <= 2500; ms += 100) {
    watch.heard(w1, trains, at(ms));
    watch.heard(w2, last, at(ms));
    const auto next = watch.successor(current, Beat{}, at(ms));
    CHECK(next.has_value() == (ms >= 2100));
    if (next) CHECK(next->workers.empty());
  }
}

TEST_CASE("a worker whose values are still arriving neither is silent nor hangs") {
  for (const std::uint64_t bytes : {0, 200, 4000}) {  // nothing, a beat, a part of a push
    CAPTURE(bytes);
    MemberWatch watch({}, s1, at(0));
    const Epoch current = epoch_of(7, {w1, w2});
    watch.installed(current, at(0));
    Beat trains = beat_of(7, 3);
    trains.longest_step_us = 1000;
    Beat waits = trains;
    waits.waiting = true;
    watch.heard(w1, trains, at(100));
    std::optional<int> left_out;
    for (int ms = 200; ms <= 4000 && !left_out; ms += 100) {
      if (bytes > 0) watch.sends(w1, bytes, at(ms));
      watch.heard(w2, waits, at(ms));
      if (watch.successor(current, Beat{}, at(ms))) left_out = ms;
    }
    CHECK(left_out.has_value() == (bytes < 4000));
  }
}

TEST_CASE("a worker that comes begins after the step of the members, whatever others claim") {
  MemberWatch watch({}, s1, at(0));
  const Epoch current = epoch_of(7, {w1, {"w4", 1}});
  watch.installed(current, at(0));
  watch.heard({"w4", 1}, beat_of(7, 60), at(0));
  const TimePoint now = at(2100);
  watch.heard(w1, beat_of(7, 3), now);
  watch.heard({"w3", 1}, beat_of(7, std::uint64_t{1} << 62, /*joins=*/false), now);
  watch.heard(w2, beat_of(7, 1000), now);
  auto next = watch.successor(current, Beat{}, now);
  REQUIRE(next);
  REQUIRE(next->worker("w2") != nullptr);
  CHECK(next->worker("w2")->first_step == 4);
  CHECK(next->worker("w4") == nullptr);

  watch.heard(w1, beat_of(7, std::uint64_t{1} << 62), now);
  next = watch.successor(current, beat_of(7, 5), now);
  REQUIRE(next);
  CHECK(next->worker("w2")->first_step == 6);
}

}  // namespace dpwa::kvstore
