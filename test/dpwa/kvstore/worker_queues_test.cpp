#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/worker_engine.h"

// In which order the requests of a worker leave, and what that costs.

namespace dpwa::kvstore {
namespace {

constexpr TimePoint start{};
const MemberId w1{"w1", 3};
const ValueSpec pair_of_floats{DType::float32, {2}};

WorkerEngine worker_of(ServerState second, bool merged = true, std::uint64_t first_tag = 1) {
  WorkerOptions options;
  options.merged = merged;
  options.first_tag = first_tag;
  WorkerEngine worker(options, w1, {"s1", "s2"});
  Epoch epoch;
  epoch.number = epoch.run = 5;
  epoch.servers = {{{"s1", 7}, ServerState::up}, {{"s2", 9}, second}};
  epoch.workers = {{w1, 0}};
  worker.receive({"s1", 7}, 0, EpochNews{epoch}, start);
  return worker;
}

// The keys from 0 on whose one slice is on that server.
std::vector<std::int64_t> keys_of(std::uint32_t server, std::size_t count) {
  std::vector<std::int64_t> keys;
  for (std::int64_t key = 0; keys.size() < count; ++key) {
    if (cut_into_slices(Key(key), 2, 2).front().server == server) keys.push_back(key);
  }
  return keys;
}

Push push_of(std::int64_t key, std::uint64_t step) {
  Push push;
  push.slice = {Key(key), 0};
  push.step = step;
  push.values.resize(8);
  return push;
}

Answer answer_to(const SliceId& slice, AnswerKind kind) {
  Answer answer;
  answer.epoch = 5;
  answer.slice = slice;
  answer.kind = kind;
  return answer;
}

// The processor time that the worker takes until as many of its INITs are answered, one at a time.
std::clock_t time_to_create(std::size_t count, ServerState second) {
  WorkerEngine worker = worker_of(second);
  const std::clock_t began = std::clock();
  for (std::size_t key = 0; key < count; ++key) {
    worker.init(Key(static_cast<std::int64_t>(key)), pair_of_floats, {});
  }
  std::vector<Outgoing> sent;
  for (std::size_t next = 0;; ++next) {
    for (Outgoing& each : worker.take(start)) sent.push_back(std::move(each));
    while (next < sent.size() && !std::holds_alternative<Init>(sent[next].message)) ++next;
    if (next == sent.size()) break;
    const SliceId slice = std::get<Init>(sent[next].message).slice;
    worker.receive({sent[next].to, 7}, sent[next].tag, answer_to(slice, AnswerKind::created),
                   start);
  }
  return std::clock() - began;
}

TEST_CASE("requests for a server that is down do not slow down those for the others") {
  constexpr std::size_t count = 6000;
  const auto both = time_to_create(count, ServerState::up);
  const auto one = time_to_create(count, ServerState::down);
  CHECK(one < 5 * both + CLOCKS_PER_SEC / 10);
}

TEST_CASE("pulls that wait for a push of their worker leave once it is acknowledged") {
  WorkerEngine worker = worker_of(ServerState::up, /*merged=*/false);
  const std::vector<std::int64_t> keys = keys_of(0, 2);
  for (const std::int64_t key : keys) worker.init(Key(key), pair_of_floats, {});
  for (const Outgoing& each : worker.take(start)) {
    if (!std::holds_alternative<Init>(each.message)) continue;
    const SliceId slice = std::get<Init>(each.message).slice;
    worker.receive({"s1", 7}, each.tag, answer_to(slice, AnswerKind::created), start);
  }
  for (const std::int64_t key : keys) {
    worker.push(push_of(key, 0));
    worker.push(push_of(key, 1));
    worker.pull({0, {Key(key), 0}, 1, 0});
  }
  const auto first = worker.take(start);
  REQUIRE(first.size() == 2);
  CHECK(worker.take(start).empty());
  const auto slice = std::get<Push>(first[1].message).slice;
  worker.receive({"s1", 7}, first[1].tag, answer_to(slice, AnswerKind::counted), start);
  const auto second = worker.take(start);
  REQUIRE(second.size() == 2);
  CHECK(std::get<Push>(second[0].message).step == 1);
  CHECK(std::get<Push>(second[0].message).slice == slice);
  CHECK(std::get<Pull>(second[1].message).slice == slice);
}

TEST_CASE("a pull that was asked for before the INIT of its key leaves after that") {
  WorkerEngine worker = worker_of(ServerState::up);
  const std::int64_t key = keys_of(1, 1).front();
  worker.pull({0, {Key(key), 0}, 0, 0});
  CHECK(worker.take(start).empty());
  worker.init(Key(key), pair_of_floats, {});
  CHECK(worker.take(start).size() == 2);
}

TEST_CASE("one server that answers for two sends by priority, whichever of them has the slice") {
  WorkerOptions options;
  options.replicas = true;
  options.window = options.short_in_one = 1;
  WorkerEngine worker(options, w1, {"s1", "s2"});
  Epoch epoch;
  epoch.number = epoch.run = 5;
  epoch.servers = {{{"s1", 7}, ServerState::up}, {{"s2", 9}, ServerState::down}};
  epoch.workers = {{w1, 0}};
  const std::int64_t of_s1 = keys_of(0, 1).front();
  const std::int64_t of_s2 = keys_of(1, 1).front();
  for (const std::int64_t key : {of_s1, of_s2}) worker.init(Key(key), pair_of_floats, {});
  worker.push(push_of(of_s1, 0), 1);
  worker.push(push_of(of_s2, 0), 2);
  worker.receive({"s1", 7}, 0, EpochNews{epoch}, start);
  const auto sent = worker.take(start);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].to == "s1");
  CHECK(std::get<Push>(sent[0].message).slice.key == Key(of_s2));
}

TEST_CASE("short requests share places of the window, long ones take one each") {
  WorkerOptions options;
  options.window = 2;
  options.short_in_one = 4;
  WorkerEngine worker(options, w1, {"s1"});
  Epoch epoch;
  epoch.number = epoch.run = 5;
  epoch.servers = {{{"s1", 7}, ServerState::up}};
  epoch.workers = {{w1, 0}};
  worker.receive({"s1", 7}, 0, EpochNews{epoch}, start);
  worker.take(start);
  const ValueSpec more_than_short{DType::float32, {short_slice_bytes / 4 + 1}};
  std::size_t leave = 0;
  SUBCASE("short") {
    for (int key = 0; key < 20; ++key) worker.init(Key(key), pair_of_floats, {});
    leave = 8;
  }
  SUBCASE("long") {
    for (int key = 0; key < 20; ++key) worker.init(Key(key), more_than_short, {});
    leave = 2;
  }
  SUBCASE("long ones after short ones") {
    for (int key = 0; key < 5; ++key) worker.init(Key(key), pair_of_floats, {});
    for (int key = 5; key < 20; ++key) worker.init(Key(key), more_than_short, {});
    leave = 6;
  }
  const auto sent = worker.take(start);
  REQUIRE(sent.size() == leave);
  // An answer makes the room of its request.
  const SliceId first = std::get<Init>(sent[0].message).slice;
  worker.receive({"s1", 7}, sent[0].tag, answer_to(first, AnswerKind::created), start);
  CHECK(worker.take(start).size() <= 1);
}

}  // namespace
// To which servers the INITs go that leave now.
std::vector<std::string> requests_to(WorkerEngine& worker, TimePoint now) {
  std::vector<std::string> servers;
  for (const Outgoing& each : worker.take(now)) {
    if (std::holds_alternative<Init>(each.message)) servers.push_back(each.to);
  }
  return servers;
}

TEST_CASE("what has no answer is sent again in time, but not while a slow line carries it") {
  WorkerEngine worker = worker_of(ServerState::up);
  for (const std::uint32_t server : {0, 1})
    worker.init(Key(keys_of(server, 1).front()), pair_of_floats, {});
  using Servers = std::vector<std::string>;
  CHECK(requests_to(worker, start) == Servers{"s1", "s2"});
  const auto resend = WorkerOptions().resend;
  TimePoint now = start;
  for (int tick = 0; tick < 30; ++tick) {
    now += resend / 10;
    worker.transfer("s1", now);
    worker.tick(now);
    const bool due = tick % 10 == 9;
    CHECK(requests_to(worker, now) == (due ? Servers{"s2"} : Servers{}));
  }
  now += resend;
  worker.tick(now);
  CHECK(requests_to(worker, now) == Servers{"s1", "s2"});
}

TEST_CASE("what was sent over a connection that broke is sent again at once over the next one") {
  WorkerEngine worker = worker_of(ServerState::up);
  for (const std::uint32_t server : {0, 1})
    worker.init(Key(keys_of(server, 1).front()), pair_of_floats, {});
  CHECK(requests_to(worker, start).size() == 2);
  worker.connected("s2");
  CHECK(requests_to(worker, start) == std::vector<std::string>{"s2"});
  CHECK(requests_to(worker, start).empty());
}

TEST_CASE("a request that reaches a server before the epoch does is sent again at once, and once") {
  for (const bool merged : {true, false}) {
    WorkerEngine worker = worker_of(ServerState::up, merged);
    const SliceId slice{Key(keys_of(1, 1).front()), 0};
    worker.init(slice.key, pair_of_floats, {});
    worker.take(start);
    const auto refuse = [&](std::uint64_t epoch) {
      Answer answer = answer_to(slice, AnswerKind::other_epoch);
      answer.epoch = epoch;
      worker.receive({"s2", 9}, 1, answer, start);
      return worker.take(start);
    };
    const auto sent = refuse(4);
    REQUIRE(sent.size() == 2);
    CHECK(sent[0].to == "s2");
    CHECK(std::holds_alternative<EpochNews>(sent[0].message));
    CHECK(sent[1].to == "s2");
    CHECK(sent[1].tag == 1);
    CHECK(std::holds_alternative<Init>(sent[1].message));
    const auto then = refuse(4);  // it does not take the epoch up
    REQUIRE(then.size() == 1);
    CHECK(std::holds_alternative<EpochNews>(then[0].message));
  }
}

TEST_CASE("requests are answered beyond the 32 bits that frames have of their numbers") {
  WorkerEngine worker = worker_of(ServerState::up, true, (std::uint64_t{1} << 32) - 1);
  for (const std::int64_t key : keys_of(0, 3)) worker.init(Key(key), pair_of_floats, {});
  const auto sent = worker.take(start);
  REQUIRE(sent.size() == 3);
  for (const Outgoing& each : sent) {
    const auto in_frame = static_cast<std::uint32_t>(each.tag);
    const SliceId slice = std::get<Init>(each.message).slice;
    worker.receive({"s1", 7}, in_frame, answer_to(slice, AnswerKind::created), start);
  }
  const auto created = [](const WorkerEngine::Event& event) {
    return std::holds_alternative<WorkerEngine::Created>(event);
  };
  CHECK(std::ranges::count_if(worker.take_events(), created) == 3);
}

}  // namespace dpwa::kvstore
