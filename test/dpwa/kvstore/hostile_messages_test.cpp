#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/worker_engine.h"

// Messages of members that cannot be, or that ask for more than they may: the engines of the others
// go on. What random ones do is for the fuzzer store_engines.

namespace dpwa::kvstore {
namespace {

constexpr TimePoint start{};
const MemberId w1{"w1", 3};
const MemberId w2{"w2", 4};
const MemberId s2{"s2", 9};
const ValueSpec pair_of_floats{DType::float32, {2}};

Epoch whole_epoch() {
  Epoch epoch;
  epoch.number = epoch.run = 5;
  epoch.servers = {{{"s1", 7}, ServerState::up}, {s2, ServerState::up}};
  epoch.workers = {{w1, 0}, {w2, 0}};
  return epoch;
}

ServerEngine server_with(bool replicas) {
  ServerEngineOptions options;
  options.shard = rules_of(KvstoreType::dist_sync, 0, replicas);
  ServerEngine engine(options, {"s1", 7}, {"s1", "s2"}, start);
  engine.receive(s2, 0, EpochNews{whole_epoch()}, start);
  engine.take();
  return engine;
}

// The first key from `from` on whose one slice is on s1.
std::int64_t key_of_s1(std::int64_t from) {
  while (cut_into_slices(Key(from), 2, 2).front().server != 0) ++from;
  return from;
}

std::vector<Answer> answers(ServerEngine& engine) {
  std::vector<Answer> found;
  for (Outgoing& each : engine.take()) {
    if (auto* answer = std::get_if<Answer>(&each.message)) found.push_back(std::move(*answer));
  }
  return found;
}

TEST_CASE("messages for slices that come before the first epoch have no effect") {
  ServerEngineOptions options;
  options.shard = rules_of(KvstoreType::dist_sync, 0, true);
  ServerEngine engine(options, {"s1", 7}, {"s1", "s2"}, start);
  const SliceId slice{key_of_s1(1), 0};
  for (const std::uint64_t epoch : {0, 5}) {
    CAPTURE(epoch);
    Copy copy;
    copy.epoch = epoch;
    copy.slice = slice;
    copy.spec = pair_of_floats;
    copy.values = std::make_shared<Bytes>(8);
    engine.receive(s2, 0, std::move(copy), start);
    engine.receive(s2, 0, Sync{epoch, slice, 1, 0}, start);
    Forward change;
    change.epoch = epoch;
    change.slice = slice;
    engine.receive(s2, 0, std::move(change), start);
    engine.receive(w1, 1, Init{epoch, slice, pair_of_floats, Bytes(8)}, start);
    Push push;
    push.epoch = epoch;
    push.slice = slice;
    push.values = Bytes(8);
    engine.receive(w1, 2, std::move(push), start);
    engine.receive(w1, 3, Pull{epoch, slice, 0, 0}, start);
  }
  CHECK(engine.shard().size() == 0);
}

TEST_CASE("an epoch that is none of these servers is not installed, by a server or a worker") {
  Epoch epoch = whole_epoch();
  epoch.number = 6;
  SUBCASE("without servers") {
    epoch.servers.clear();
  }
  SUBCASE("with one server less") {
    epoch.servers.pop_back();
  }
  SUBCASE("with one server more") {
    epoch.servers.push_back({{"s3", 1}, ServerState::up});
  }
  SUBCASE("in another order") {
    std::swap(epoch.servers[0], epoch.servers[1]);
  }
  SUBCASE("with a worker twice") {
    epoch.workers = {{w1, 0}, {w1, 0}};
  }
  SUBCASE("with workers out of order") {
    epoch.workers = {{w2, 0}, {w1, 0}};
  }
  SUBCASE("with a server as a worker") {
    epoch.workers = {{{"s1", 7}, 0}};
  }
  ServerEngine server = server_with(true);
  WorkerEngine worker({}, w1, {"s1", "s2"});
  worker.receive(s2, 0, EpochNews{whole_epoch()}, start);
  for (const Message& message : {Message(EpochNews{epoch}), Message(Proposal{5, 1 << 16, epoch})}) {
    server.receive(w2, 0, message, start);
    worker.receive(s2, 0, message, start);
    for (const Outgoing& each : server.take())
      CHECK_FALSE(std::holds_alternative<Vote>(each.message));
    for (const Outgoing& each : worker.take(start))
      CHECK_FALSE(std::holds_alternative<Vote>(each.message));
  }
  CHECK(server.epoch() == whole_epoch());
  CHECK(worker.epoch() == whole_epoch());
}

TEST_CASE("a number of an epoch that leaves no room for others is not installed") {
  ServerEngine server = server_with(true);
  WorkerEngine worker({}, w1, {"s1", "s2"});
  worker.receive(s2, 0, EpochNews{whole_epoch()}, start);
  Epoch epoch = whole_epoch();
  for (const std::uint64_t number :
       {std::numeric_limits<std::uint64_t>::max(), std::uint64_t{1} << 62}) {
    epoch.number = number;
    for (const MemberId& from : {w2, s2}) server.receive(from, 0, EpochNews{epoch}, start);
    worker.receive(s2, 0, EpochNews{epoch}, start);
    epoch.run = number;
    worker.receive(s2, 0, EpochNews{epoch}, start);
  }
  CHECK(server.epoch() == whole_epoch());
  CHECK(worker.epoch() == whole_epoch());
  CHECK(worker.take_events().size() == 1);  // it has joined
}

TEST_CASE("a server takes no epoch from a caller that takes part in neither") {
  ServerEngine server = server_with(true);
  Epoch epoch = whole_epoch();
  epoch.number = 6;
  epoch.workers.clear();
  server.receive({"w9", 1}, 0, EpochNews{epoch}, start);
  server.receive({"w2", 1}, 0, EpochNews{epoch}, start);
  CHECK(server.epoch().number == 5);
  epoch.workers = {{{"w9", 1}, 0}};
  server.receive({"w9", 1}, 0, EpochNews{epoch}, start);  // it was taken in by the others
  CHECK(server.epoch().number == 6);
  epoch.number = 7;
  server.receive(s2, 0, EpochNews{epoch}, start);
  CHECK(server.epoch().number == 7);
}

// A liar among the members can therefore end the run: docs/SECURITY.md.
TEST_CASE("a worker of the epoch is believed when the others went on without this server") {
  ServerEngine server = server_with(true);
  Epoch epoch = whole_epoch();
  epoch.number = 6;
  epoch.servers[0].state = ServerState::down;
  server.receive(w2, 0, EpochNews{epoch}, start);
  CHECK(server.deposed());
}

TEST_CASE("only servers of the epoch propose another one") {
  ServerEngine server = server_with(true);
  Epoch epoch = whole_epoch();
  epoch.number = 6;
  const auto answered = [&](const MemberId& from, const Message& message) {
    server.receive(from, 0, message, start);
    return !server.take().empty();
  };
  constexpr std::uint64_t ballot = 1 << 16;
  for (const MemberId& from : {w2, MemberId{"w9", 1}, MemberId{"s2", 8}}) {
    CHECK_FALSE(answered(from, Ballot{5, ~std::uint64_t{0}}));
    CHECK_FALSE(answered(from, Proposal{5, ~std::uint64_t{0}, epoch}));
  }
  CHECK(answered(s2, Ballot{5, ballot}));
  CHECK(answered(s2, Proposal{5, ballot, epoch}));
}

// The numbers of snapshots count on, or none would begin again.
TEST_CASE("a number of a snapshot that leaves no room for others is not taken over") {
  ServerEngine server = server_with(true);
  Beat beat;
  beat.epoch = 5;
  for (const MemberId& from : {w1, MemberId{"w9", 1}, s2}) {
    beat.snapshot = std::numeric_limits<std::uint32_t>::max();
    server.receive(from, 0, beat, start);
  }
  CHECK(server.shard().snapshot() == 0);
  beat.snapshot = 7;
  server.receive(s2, 0, beat, start);
  CHECK(server.begin_snapshot() == 8);
}

TEST_CASE("any slice of a value is found without cutting the value into slices") {
  for (const std::uint64_t elements :
       {std::uint64_t{0}, std::uint64_t{5}, large_key_elements - 1, large_key_elements,
        large_key_elements + 7, 9 * slice_elements + 17}) {
    for (const std::uint32_t servers : {1U, 2U, 3U, 7U}) {
      const auto cuts = cut_into_slices(Key(1), elements, servers);
      for (std::uint32_t index = 0; index < cuts.size(); ++index)
        CHECK(slice_at(Key(1), elements, servers, index) == cuts[index]);
      CHECK_FALSE(slice_at(Key(1), elements, servers, static_cast<std::uint32_t>(cuts.size())));
    }
  }
  // 2^46 elements have 2^28 slices.
  const auto last = slice_at(Key(1), std::uint64_t{1} << 46, 2, (1U << 28) - 1);
  REQUIRE(last);
  CHECK(last->server == 1);
  CHECK(last->elements.end() == std::uint64_t{1} << 46);
}

TEST_CASE("a push of the last number, which no step follows, is refused") {
  ServerEngineOptions options;
  SUBCASE("with merged pushes") {
    options.shard = rules_of(KvstoreType::dist_sync);
  }
  SUBCASE("with an update at each push") {
    options.shard = rules_of(KvstoreType::dist_async);
  }
  ServerEngine engine(options, {"s1", 7}, {"s1"}, start);
  Epoch epoch;
  epoch.number = epoch.run = 5;
  epoch.servers = {{{"s1", 7}, ServerState::up}};
  epoch.workers = {{w1, 0}};
  engine.receive(w1, 0, EpochNews{epoch}, start);
  engine.receive(w1, 1, Init{5, {1, 0}, pair_of_floats, Bytes(8)}, start);
  engine.take();
  const auto answer_to = [&](std::uint64_t step) {
    Push push;
    push.epoch = 5;
    push.slice = {1, 0};
    push.step = step;
    push.values = Bytes(8);
    const OptionsBytes optimizer = encode(default_options(OptimizerKind::sgd));
    push.optimizer = {optimizer.begin(), optimizer.end()};
    engine.receive(w1, 2, std::move(push), start);
    return answers(engine).back().kind;
  };
  constexpr auto last = std::numeric_limits<std::uint64_t>::max();
  CHECK(answer_to(last) == AnswerKind::wrong_spec);
  CHECK(answer_to(0) != AnswerKind::wrong_spec);
  CHECK(answer_to(last) == AnswerKind::wrong_spec);
}

TEST_CASE("a worker that names ever more keys is refused, and the others are not") {
  ServerEngine engine = server_with(false);
  std::int64_t key = 0;
  for (std::size_t i = 0; i < most_waiting_inits; ++i, ++key) {
    key = key_of_s1(key);
    engine.receive(w2, i, Init{5, {Key(key), 0}, pair_of_floats, {}}, start);
  }
  CHECK(answers(engine).empty());
  key = key_of_s1(key);
  const Init one_more{5, {Key(key), 0}, pair_of_floats, {}};
  engine.receive(w2, 1, one_more, start);
  const auto refused = answers(engine);
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].kind == AnswerKind::wrong_spec);
  CHECK(refused[0].problem.find("worker w2: 1024 of its keys wait for the values of worker w1") !=
        std::string::npos);
  Init of_first = one_more;
  of_first.values.resize(8);
  engine.receive(w1, 1, of_first, start);
  CHECK(answers(engine).size() == 1);
  engine.receive(w2, 2, one_more, start);
  const auto created = answers(engine);
  REQUIRE(created.size() == 1);
  CHECK(created[0].kind == AnswerKind::created);
}

TEST_CASE("a push that is sent a thousand times while its replica is stored has one answer") {
  ServerEngine engine = server_with(true);
  const SliceId slice{Key(key_of_s1(0)), 0};
  for (const MemberId& worker : {w1, w2}) {
    Init init{5, slice, pair_of_floats, {}};
    init.values.resize(8);
    engine.receive(worker, 1, init, start);
  }
  const auto store = [&] {
    engine.receive(s2, 0, Stored{5, slice, engine.shard().view(slice)->version}, start);
    return answers(engine).size();
  };
  CHECK(store() == 2);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    for (const MemberId& worker : {w1, w2}) {
      Push push;
      push.epoch = 5;
      push.slice = slice;
      push.values.resize(8);
      engine.receive(worker, 2 + i, push, start);
    }
  }
  answers(engine);
  CHECK(store() == 2);
}

TEST_CASE("a replica passes over an update whose length is not that of its slice") {
  ServerEngine engine = server_with(true);
  std::int64_t key = 0;
  while (cut_into_slices(Key(key), 2, 2).front().server != 1) ++key;
  const SliceId slice{Key(key), 0};
  Copy copy;
  copy.epoch = 5;
  copy.slice = slice;
  copy.spec = pair_of_floats;
  copy.values = std::make_shared<Bytes>(8);
  engine.receive(s2, 0, std::move(copy), start);
  Forward forward;
  forward.epoch = 5;
  forward.slice = slice;
  forward.version = 1;
  for (const std::size_t bytes : {4, 12, 8}) {
    forward.gradient.assign(bytes, std::byte{1});
    CHECK_NOTHROW(engine.receive(s2, 0, forward, start));
    CHECK(engine.shard().view(slice)->version == (bytes == 8 ? 1 : 0));
  }
}

TEST_CASE("a worker that claims steps without end does not hide that another hangs") {
  WatchOptions options;
  MemberWatch watch(options, {"s1", 7}, start);
  Epoch epoch = whole_epoch();
  epoch.servers.pop_back();
  watch.installed(epoch, start);
  Beat beat{5, 1, true, true, std::numeric_limits<std::uint64_t>::max(), 0, {}};
  watch.heard(w2, beat, start);
  beat.waiting = false;
  beat.clock = 0;
  beat.longest_step_us = 1000;
  watch.heard(w1, beat, start);
  const auto has_w1 = [&](Duration later) {
    const TimePoint then = start + later;
    for (const MemberId& worker : {w1, w2}) {
      Beat again{5, worker == w2 ? 1U : 0U, worker == w2, true, 0, 0, {}};
      again.longest_step_us =
          worker == w2 ? std::numeric_limits<std::uint64_t>::max() : std::uint64_t{1000};
      watch.heard(worker, again, then);
    }
    const auto next = watch.successor(epoch, {}, then);
    return (next ? *next : epoch).worker("w1") != nullptr;
  };
  CHECK(has_w1(std::chrono::hours(23)));
  CHECK_FALSE(has_w1(std::chrono::hours(25)));
}

TEST_CASE("an answer of another kind than the request leaves the request open") {
  WorkerEngine worker({}, w1, {"s1", "s2"});
  worker.receive(s2, 0, EpochNews{whole_epoch()}, start);
  const Key key(key_of_s1(0));
  worker.init(key, pair_of_floats, {});
  Push push;
  push.slice = {key, 0};
  push.values.resize(8);
  worker.push(std::move(push));
  worker.take(start);
  worker.take_events();
  // The INIT has tag 1, the push tag 2.
  Answer answer;
  answer.epoch = 5;
  answer.slice = {key, 0};
  for (const auto kind : {AnswerKind::created, AnswerKind::value, AnswerKind::unchanged}) {
    answer.kind = kind;
    worker.receive({"s1", 7}, 2, answer, start);
    CHECK(worker.outstanding() == 2);
  }
  for (const auto kind : {AnswerKind::counted, AnswerKind::dropped, AnswerKind::value}) {
    answer.kind = kind;
    worker.receive({"s1", 7}, 1, answer, start);
    CHECK(worker.outstanding() == 2);
  }
  CHECK(worker.take_events().empty());
}

}  // namespace
}  // namespace dpwa::kvstore
