#include <doctest/doctest.h>

#include "dpwa/kvstore/member_watch.h"
#include "dpwa/kvstore/shard_engine.h"
#include "dpwa/kvstore/worker_engine.h"
#include "test/dpwa/kvstore/doubles.h"
#include "test/dpwa/kvstore/workers.h"

// Workers that count the steps of each key apart, and states of optimizers on their way.

namespace dpwa::kvstore {
namespace {

using testing::bytes_of;
using testing::doubles_of;

constexpr TimePoint now{};
const ValueSpec spec{DType::float64, {2}};
const SliceId slice{"w", 0};
using testing::w0;
using testing::w1;
using testing::w2;

Epoch epoch_of(std::uint64_t number, const std::vector<MemberId>& workers) {
  Epoch epoch{number, {{{"s0", 1}, ServerState::up}}, {}};
  for (const MemberId& worker : workers) epoch.workers.push_back({worker, 0});
  return epoch;
}

Bytes momentum() {
  OptimizerOptions options = default_options(OptimizerKind::momentum);
  options.learning_rate = 1;
  const auto form = encode(options);
  return {form.begin(), form.end()};
}

struct Server {
  explicit Server(const ShardRules& rules) : engine(rules, "s0") {
    engine.install(epoch_of(7, {w0, w1}), now);
    engine.receive(w0, 1, Init{7, slice, spec, bytes_of({0, 0})}, now);
    engine.take();
  }
  void push(const MemberId& from, std::uint64_t step, std::vector<double> gradient) {
    Push push;
    push.epoch = engine.epoch().number;
    push.slice = slice;
    push.step = step;
    push.optimizer = momentum();
    push.values = bytes_of(gradient);
    engine.receive(from, 1, std::move(push), now);
    engine.take();
  }
  Answer pull(const MemberId& from) {
    engine.receive(from, 1, Pull{engine.epoch().number, slice, 0, 0}, now);
    const auto all = engine.take();
    REQUIRE(all.size() == 1);
    return std::get<Answer>(all[0].message);
  }
  Message ask(const MemberId& from, std::uint64_t tag, StateMessage message) {
    message.epoch = engine.epoch().number;
    message.slice = slice;
    engine.receive(from, tag, message, now);
    auto all = engine.take();
    REQUIRE(all.size() == 1);
    return std::move(all[0].message);
  }
  ShardEngine engine;
};

TEST_CASE("a worker that joins hears with which step of a key it begins: the round that is open") {
  Server server(rules_of(KvstoreType::dist_sync));
  CHECK(server.pull(w1).step == 0);
  for (std::uint64_t step : {0, 1}) {
    server.push(w0, step, {1, 1});
    server.push(w1, step, {1, 1});
  }
  server.push(w0, 2, {1, 1});
  CHECK(server.pull(w0).step == 3);
  CHECK(server.pull(w1).step == 2);
  server.engine.install(epoch_of(8, {w0, w1, w2}), now);
  CHECK(server.pull(w2).step == 2);
  server.engine.receive(w2, 4, Init{8, slice, spec, {}}, now);
  CHECK(std::get<Answer>(server.engine.take().at(0).message).step == 2);
  // The round waits for it, as for the others.
  server.push(w1, 2, {1, 1});
  CHECK(server.engine.view(slice)->round == 2);
  server.push(w2, 2, {1, 1});
  CHECK(server.engine.view(slice)->round == 3);
}

TEST_CASE("with an update at each push it begins with the step of the slowest of the others") {
  Server server(rules_of(KvstoreType::dist_ssp, 3));
  for (std::uint64_t step : {0, 1, 2, 3, 4}) server.push(w0, step, {1, 1});
  for (std::uint64_t step : {0, 1, 2}) server.push(w1, step, {1, 1});
  server.engine.install(epoch_of(8, {w0, w1, w2}), now);
  CHECK(server.pull(w2).step == 3);
  CHECK(server.pull(w0).step == 5);
}

TEST_CASE("a worker that counts the steps of each key apart joins with step 0") {
  for (const bool own_steps : {false, true}) {
    WatchOptions options;
    MemberWatch watch(options, {"s0", 1}, now);
    const Epoch current = epoch_of(7, {w0});
    watch.installed(current, now);
    Beat beat{7, 41, false, true, 0, 0, {}, false};
    watch.heard(w0, beat, now);
    beat.clock = 0;
    beat.own_steps = own_steps;
    watch.heard(w1, beat, now);
    const auto next = watch.successor(current, Beat{7, 41, false, false, 0, 0, {}, false}, now);
    REQUIRE(next);
    REQUIRE(next->worker("w1") != nullptr);
    CHECK(next->worker("w1")->first_step == (own_steps ? 0 : 42));
  }
}

TEST_CASE("a step with several waits is as long as all that was computed in it") {
  using std::chrono::seconds;
  WorkerEngine engine({}, w0, {"s0"});
  TimePoint at{};
  for (std::uint64_t step = 0; step < 5; ++step) {
    engine.at(step, false, at);
    engine.at(step, true, at += seconds(3));   // computed
    engine.at(step, false, at += seconds(5));  // waited
    engine.at(step, true, at += seconds(2));
    engine.at(step + 1, false, at += seconds(5));
  }
  engine.tick(at);
  for (const Outgoing& each : engine.take(at)) {
    if (const auto* beat = std::get_if<Beat>(&each.message))
      CHECK(beat->longest_step_us == 5'000'001);
  }
}

TEST_CASE("the state of an optimizer is given to a worker, and placed by one") {
  using Kind = StateMessage::Kind;
  Server server(rules_of(KvstoreType::dist_async));
  auto given = std::get<StateMessage>(server.ask(w0, 1, {}));
  CHECK(given.kind == Kind::give);
  CHECK(given.optimizer.empty());
  server.push(w0, 0, {1, 2});
  server.push(w0, 1, {1, 2});
  given = std::get<StateMessage>(server.ask(w0, 2, {}));
  CHECK(given.optimizer == momentum());
  CHECK(given.steps == 2);
  CHECK(doubles_of(given.state) == std::vector<double>{1.9, 3.8});

  StateMessage place = given;
  place.kind = Kind::place;
  place.state = bytes_of({10, 20});
  const std::uint64_t version = server.engine.view(slice)->version;
  CHECK(std::get<Answer>(server.ask(w1, 3, place)).kind == AnswerKind::counted);
  CHECK(server.engine.view(slice)->version == version + 1);
  server.push(w0, 2, {0, 0});
  given = std::get<StateMessage>(server.ask(w0, 4, {}));
  CHECK(doubles_of(given.state) == std::vector<double>{9, 18});
  // Sent again: the update since then stays.
  CHECK(std::get<Answer>(server.ask(w1, 3, place)).kind == AnswerKind::counted);
  CHECK(std::get<StateMessage>(server.ask(w0, 5, {})).state == given.state);

  place.state.pop_back();
  const auto refused = std::get<Answer>(server.ask(w1, 6, place));
  CHECK(refused.kind == AnswerKind::wrong_spec);
  CHECK(refused.problem ==
        "key 'w', worker w1: a state of 15 bytes, where that of momentum has 16, and with the "
        "value 32");
  place.optimizer = {};
  CHECK(std::get<Answer>(server.ask(w1, 7, place)).kind == AnswerKind::bad_optimizer);
}

TEST_CASE("a value is placed with the state, and who reads the one before keeps it") {
  using Kind = StateMessage::Kind;
  Server server(rules_of(KvstoreType::dist_sync));
  const SharedBytes before = server.pull(w0).values;
  const StateMessage place{7, slice, Kind::place, momentum(), 5, bytes_of({10, 20, 3, 4})};
  CHECK(std::get<Answer>(server.ask(w1, 3, place)).kind == AnswerKind::counted);
  CHECK(doubles_of(*server.pull(w0).values) == std::vector<double>{3, 4});
  CHECK(doubles_of(*before) == std::vector<double>{0, 0});
  const auto given = std::get<StateMessage>(server.ask(w0, 4, {}));
  CHECK(given.steps == 5);
  CHECK(doubles_of(given.state) == std::vector<double>{10, 20});
}

TEST_CASE("a state that was placed is acknowledged after the replica has it") {
  ShardRules rules = rules_of(KvstoreType::dist_async, 0, /*replicas=*/true);
  Epoch epoch = epoch_of(7, {w0});
  epoch.servers.push_back({{"s1", 1}, ServerState::up});
  ShardEngine primary(rules, "s0"), backup(rules, "s1");
  const SliceId here{0, 0};  // its home is s0 or s1: the roles are as they come out
  ShardEngine* first = &primary;
  ShardEngine* second = &backup;
  if (cut_into_slices(here.key, 2, 2)[0].server == 1) std::swap(first, second);
  const std::string first_name = first == &primary ? "s0" : "s1";
  for (ShardEngine* engine : {first, second}) engine->install(epoch, now);
  // Every message to the other server, until there is none; the answers to the worker.
  std::vector<Message> answers;
  const auto exchange = [&] {
    for (bool more = true; more;) {
      more = false;
      for (ShardEngine* engine : {first, second}) {
        const MemberId from{engine == &primary ? "s0" : "s1", 1};
        for (Outgoing& each : engine->take()) {
          if (each.to == "w0") {
            answers.push_back(std::move(each.message));
            continue;
          }
          more = true;
          ShardEngine* other = engine == first ? second : first;
          if (auto* copy = std::get_if<Copy>(&each.message)) other->receive(from, *copy, now);
          if (auto* sync = std::get_if<Sync>(&each.message)) other->receive(from, *sync, now);
          if (auto* want = std::get_if<Want>(&each.message)) other->receive(from, *want, now);
          if (auto* stored = std::get_if<Stored>(&each.message)) other->receive(from, *stored, now);
        }
      }
    }
  };
  first->receive(w0, 1, Init{7, here, spec, bytes_of({0, 0})}, now);
  exchange();
  REQUIRE(answers.size() == 1);
  StateMessage place{7, here, StateMessage::Kind::place, momentum(), 5, bytes_of({10, 20, 3, 4})};
  first->receive(w0, 2, place, now);
  CHECK(answers.size() == 1);
  exchange();
  REQUIRE(answers.size() == 2);
  CHECK(std::get<Answer>(answers[1]).kind == AnswerKind::counted);
  // The other server goes on with it.
  epoch.number = 8;
  epoch.servers[first == &primary ? 0 : 1].state = ServerState::down;
  second->install(epoch, now);
  second->receive(w0, 3, StateMessage{8, here, StateMessage::Kind::ask, {}, 0, {}}, now);
  const auto all = second->take();
  REQUIRE(all.size() == 1);
  CHECK(std::get<StateMessage>(all[0].message).state == bytes_of({10, 20}));
  CHECK(std::get<StateMessage>(all[0].message).steps == 5);
  CHECK(doubles_of(second->view(here)->values) == std::vector<double>{3, 4});
}

}  // namespace
}  // namespace dpwa::kvstore
