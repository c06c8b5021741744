#include "dpwa/kvstore/shard_engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "test/dpwa/kvstore/virtual_store.h"
#include "test/dpwa/kvstore/workers.h"

namespace dpwa::kvstore {
namespace {

using testing::bytes_of;
using testing::doubles_of;

constexpr TimePoint now{};
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
const ValueSpec spec{DType::float64, {2}};
const SliceId slice{"w", 0};

Epoch epoch_of(std::uint64_t number, std::size_t workers) {
  Epoch epoch{number, {{{"s0", 1}, ServerState::up}}, {}};
  for (std::size_t at = 0; at < workers; ++at) {
    epoch.workers.push_back({{"w" + std::to_string(at), 1}, 0});
  }
  return epoch;
}

// One server with one key, whose value is {1, 2}.
struct Server {
  explicit Server(const ShardRules& rules, std::size_t workers = 2) : engine(rules, "s0") {
    engine.install(epoch_of(7, workers), now);
    engine.receive({"w0", 1}, 1, Init{7, slice, spec, bytes_of({1, 2})}, now);
    engine.take();
  }

  Push push(std::uint64_t step, std::vector<double> gradient) {
    Push push;
    push.epoch = 7;
    push.slice = slice;
    push.step = step;
    push.values = bytes_of(gradient);
    return push;
  }
  // The answers, in the order in which they leave.
  std::vector<Answer> answers() {
    std::vector<Answer> all;
    for (const Outgoing& each : engine.take()) all.push_back(std::get<Answer>(each.message));
    return all;
  }
  Answer answer() {
    const auto all = answers();
    REQUIRE(all.size() == 1);
    return all.front();
  }
  std::vector<double> values() { return doubles_of(engine.view(slice)->values); }

  ShardEngine engine;
};

const ShardRules sync = rules_of(KvstoreType::dist_sync);
const ShardRules async = rules_of(KvstoreType::dist_async);
using testing::w0;
using testing::w1;

TEST_CASE("a worker that pushes and pulls ever more without an answer is refused, others are not") {
  Server server(sync);
  for (std::uint64_t step = 0; step < most_open_rounds; ++step) {
    server.engine.receive(w0, step + 1, server.push(step, {1, 1}), now);
    CHECK(server.answer().kind == AnswerKind::received);
  }
  server.engine.receive(w0, 50, server.push(most_open_rounds, {1, 1}), now);
  const Answer push = server.answer();
  CHECK(push.kind == AnswerKind::wrong_spec);
  CHECK(push.problem == "key 'w', worker w0: 16 earlier pushes of it wait for other workers");
  server.engine.receive(w0, 3, server.push(2, {1, 1}), now);  // sent again
  CHECK(server.answer().kind == AnswerKind::received);

  for (std::uint64_t tag = 100; tag < 100 + most_waiting_pulls; ++tag) {
    server.engine.receive(w0, tag, Pull{7, slice, 1, 0}, now);
  }
  CHECK(server.answers().empty());
  server.engine.receive(w0, 99, Pull{7, slice, 1, 0}, now);
  CHECK(server.answer().problem == "key 'w', worker w0: 64 earlier pulls of it wait");
  server.engine.receive(w1, 1, Pull{7, slice, 0, 0}, now);
  CHECK(server.answer().kind == AnswerKind::value);
  server.engine.receive(w1, 2, server.push(0, {1, 1}), now);
  CHECK(server.answers().size() == 1 + most_waiting_pulls);
}

TEST_CASE("without an optimizer the merged value replaces the stored one, as a sum or a mean") {
  for (const Merge merge : {Merge::sum, Merge::mean}) {
    Server server(sync);
    Push first = server.push(0, {1, 1});
    Push second = server.push(0, {4, 7});
    first.merge = second.merge = merge;
    second.weight = 2;
    server.engine.receive(w0, 1, first, now);
    CHECK(server.answer().kind == AnswerKind::received);
    server.engine.receive(w1, 2, second, now);
    server.engine.receive(w0, 3, Pull{7, slice, 1, 0}, now);
    CHECK(server.values() ==
          (merge == Merge::sum ? std::vector<double>{9, 15} : std::vector<double>{3, 5}));
  }
}

const auto sgd_form = encode(OptimizerOptions{});
const Bytes sgd(sgd_form.begin(), sgd_form.end());

// Of a sum the value stays as it was, as without that round.
TEST_CASE(
    "a round of which nothing counts leaves a weight as it was, and no mean of a former one") {
  constexpr double huge = std::numeric_limits<double>::max();
  struct Nothing {
    double gradient;
    double weight;
    AnswerKind kind;
  };
  for (const Nothing& each :
       {Nothing{4, 0, AnswerKind::counted}, Nothing{nan, 1, AnswerKind::not_finite},
        Nothing{huge, 1, AnswerKind::not_finite}}) {
    for (const bool lent : {false, true}) {
      for (const bool optimizes : {false, true}) {
        for (const Merge merge : {Merge::mean, Merge::sum}) {
          if (merge == Merge::sum && each.weight == 0) continue;
          CAPTURE(each.gradient);
          CAPTURE(lent);
          CAPTURE(optimizes);
          Server server(sync);
          const Bytes memory = bytes_of({each.gradient, 1});
          for (const MemberId& worker : {w0, w1}) {
            Push push = server.push(0, {each.gradient, 1});
            push.merge = merge;
            push.weight = each.weight;
            if (optimizes) push.optimizer = sgd;
            if (lent) push.values.clear(), push.lent = {memory};
            server.engine.receive(worker, 1, push, now);
          }
          std::map<AnswerKind, int> kinds;
          for (const Answer& answer : server.answers()) ++kinds[answer.kind];
          CHECK(kinds[AnswerKind::not_finite] == (each.kind == AnswerKind::not_finite ? 2 : 0));
          CHECK(server.engine.counts().not_finite == (each.kind == AnswerKind::not_finite ? 2 : 0));
          const bool is_mean = merge == Merge::mean && !optimizes;
          CHECK((server.values() == std::vector<double>{1, 2}) == !is_mean);
          CHECK(std::isnan(server.values()[1]) == is_mean);
          CHECK(server.engine.view(slice)->round == 1);
          for (const MemberId& worker : {w0, w1}) {
            Push push = server.push(1, {2, 3});
            push.merge = merge;
            if (optimizes) push.optimizer = sgd;
            server.engine.receive(worker, 2, push, now);
          }
          if (is_mean) CHECK(server.values() == std::vector<double>{2, 3});
        }
      }
    }
  }
}

TEST_CASE("without rounds, a push to a mean whose weight is 0 counts and changes nothing") {
  Server server(rules_of(KvstoreType::dist_ssp, 2));
  OptimizerOptions options = default_options(OptimizerKind::momentum);
  const auto form = encode(options);
  std::vector<double> moved;
  for (const bool pauses : {false, true}) {
    Push push = server.push(server.engine.view(slice)->version - 1, {4, 7});
    push.merge = Merge::mean;
    push.weight = pauses ? 0 : 8;
    push.optimizer.assign(form.begin(), form.end());
    server.engine.receive(w0, 1, push, now);
    CHECK(server.answer().kind == AnswerKind::counted);
    if (!pauses) moved = server.values();
  }
  CHECK(moved != std::vector<double>{1, 2});
  CHECK(server.values() == moved);
}

TEST_CASE("a pull waits for its round, and sends no value that the worker has") {
  Server server(sync);
  server.engine.receive(w0, 5, Pull{7, slice, 1, 0}, now);
  CHECK(server.answers().empty());
  server.engine.receive(w0, 1, server.push(0, {1, 1}), now);
  server.answer();
  Push last = server.push(0, {1, 1});
  last.wants_value = true;
  server.engine.receive(w1, 2, last, now);
  const auto both = server.answers();
  REQUIRE(both.size() == 2);
  CHECK(both[0].kind == AnswerKind::counted);
  REQUIRE(both[0].values);
  CHECK(both[1].kind == AnswerKind::value);
  CHECK(both[1].version == 2);
  server.engine.receive(w0, 6, Pull{7, slice, 1, 2}, now);
  CHECK(server.answer().kind == AnswerKind::unchanged);
}

TEST_CASE("a push that is not finite is refused and the round closes over the rest") {
  for (const bool lent : {false, true}) {
    Server server(sync);
    const Bytes memory = bytes_of({nan, 1});
    Push bad = server.push(0, {});
    bad.wants_value = true;
    (lent ? bad.values.clear() : bad.values.assign(memory.begin(), memory.end()));
    if (lent) bad.lent = {memory};
    server.engine.receive(w1, 1, bad, now);
    server.engine.receive(w0, 2, server.push(0, {3, 4}), now);
    const auto all = server.answers();
    REQUIRE(all.size() == 2);
    CHECK(all[lent ? 1 : 0].kind == AnswerKind::not_finite);
    CHECK(server.values() == std::vector<double>{3, 4});
    CHECK(server.engine.counts().not_finite == 1);
    CHECK(server.engine.view(slice)->round == 1);
  }
}

TEST_CASE("memory that a worker lends is read when the round closes") {
  Server server(sync);
  Bytes memory = bytes_of({5, 6});
  Push lent = server.push(0, {});
  lent.lent = {memory};
  server.engine.receive(w0, 1, lent, now);
  std::ranges::copy(bytes_of({7, 8}), memory.begin());
  server.engine.receive(w1, 2, server.push(0, {1, 1}), now);
  CHECK(server.values() == std::vector<double>{8, 9});
}

TEST_CASE("memory that a worker has taken back before the round closes does not count") {
  for (const bool alone : {false, true}) {
    Server server(sync);
    const Bytes memory = bytes_of({5, 6});
    const std::shared_ptr<MemoryFile> file = MemoryFile::create(memory.size());
    REQUIRE(file);
    const Loan loan{memory, file, file, file->generation()};
    Push lent = server.push(0, {});
    lent.wants_value = true;
    lent.lent = loan;
    server.engine.receive(w0, 1, lent, now);
    file->begin_write();
    Push other = server.push(0, {1, 1});
    if (alone) other.lent = loan, other.values.clear();
    server.engine.receive(w1, 2, other, now);
    CHECK(server.values() == (alone ? std::vector<double>{1, 2} : std::vector<double>{1, 1}));
    CHECK(server.engine.counts().not_finite == (alone ? 2 : 1));
    CHECK(server.engine.view(slice)->round == 1);
  }
}

TEST_CASE("an update at once does not count memory that its worker has taken back") {
  Server server(async);
  const Bytes memory = bytes_of({5, 6});
  Push lent = server.push(0, {});
  lent.optimizer = sgd;
  const std::shared_ptr<MemoryFile> file = MemoryFile::create(memory.size());
  REQUIRE(file);
  lent.lent = {memory, file, file, file->generation()};
  file->begin_write();
  file->end_write();
  const std::vector<double> before = server.values();
  server.engine.receive(w0, 1, lent, now);
  CHECK(server.answer().kind == AnswerKind::not_finite);
  CHECK(server.values() == before);
}

TEST_CASE("a round closes without the worker that the next epoch leaves out, whose push is late") {
  Server server(sync);
  server.engine.receive(w0, 1, server.push(0, {3, 4}), now);
  Epoch without = epoch_of(8, 1);
  server.engine.install(without, now);
  CHECK(server.values() == std::vector<double>{3, 4});
  Push late = server.push(0, {1, 1});
  server.engine.take();
  server.engine.receive(w1, 2, late, now);
  CHECK(server.answer().kind == AnswerKind::other_epoch);
  late.epoch = 8;
  server.engine.receive(w1, 3, late, now);
  CHECK(server.answer().kind == AnswerKind::not_member);
  server.engine.install(epoch_of(9, 2), now);
  late.epoch = 9;
  server.engine.receive(w1, 4, late, now);
  CHECK(server.answer().kind == AnswerKind::dropped);
  CHECK(server.engine.counts().dropped == 1);
  CHECK(server.values() == std::vector<double>{3, 4});
}

TEST_CASE("a push that is sent again counts once") {
  Server server(sync);
  for (int times = 0; times < 3; ++times) server.engine.receive(w0, 1, server.push(0, {3, 4}), now);
  server.engine.receive(w1, 2, server.push(0, {1, 1}), now);
  server.engine.take();
  server.engine.receive(w1, 2, server.push(0, {1, 1}), now);
  CHECK(server.answer().kind == AnswerKind::counted);
  CHECK(server.values() == std::vector<double>{4, 5});
  CHECK(server.engine.counts().duplicates == 3);
  CHECK(server.engine.counts().updates == 1);
}

TEST_CASE("an error names the key, the worker and both shapes, and the server goes on") {
  Server server(sync);
  server.engine.receive(w1, 1, Init{7, slice, {DType::float32, {2, 3}}, {}}, now);
  Answer answer = server.answer();
  CHECK(answer.kind == AnswerKind::wrong_spec);
  CHECK(answer.problem == "key 'w' is float64[2], worker w1 has float32[2,3]");
  server.engine.receive(w1, 2, server.push(0, {1, 2, 3}), now);
  answer = server.answer();
  CHECK(answer.kind == AnswerKind::wrong_spec);
  CHECK(answer.problem == "key 'w', worker w1: slice 0 of float64[2] has 16 bytes, not 24");
  Push unknown = server.push(0, {1, 2});
  unknown.slice = {"v", 0};
  server.engine.receive(w1, 3, unknown, now);
  answer = server.answer();
  CHECK(answer.kind == AnswerKind::unknown_key);
  CHECK(answer.problem == "key 'v', worker w1: no such key was initialised");
  Push strange = server.push(0, {1, 2});
  strange.optimizer = Bytes(3);
  server.engine.receive(w1, 4, strange, now);
  CHECK(server.answer().kind == AnswerKind::bad_optimizer);
  server.engine.receive(w1, 5, server.push(0, {1, 2}), now);
  CHECK(server.answer().kind == AnswerKind::received);
  CHECK(server.values() == std::vector<double>{1, 2});
}

TEST_CASE("an update at each push needs an optimizer") {
  Server server(async);
  server.engine.receive(w0, 1, server.push(0, {1, 1}), now);
  const Answer answer = server.answer();
  CHECK(answer.kind == AnswerKind::no_optimizer);
  CHECK(answer.problem == "key 'w', worker w0: an update at each push needs an optimizer");
}

TEST_CASE("the value of the first worker counts, and the others wait for it") {
  ShardEngine engine(sync, "s0");
  engine.install(epoch_of(7, 2), now);
  engine.receive(w1, 1, Init{7, slice, spec, bytes_of({8, 9})}, now);
  CHECK(engine.take().empty());
  engine.receive(w0, 2, Init{7, slice, spec, bytes_of({1, 2})}, now);
  CHECK(engine.take().size() == 2);
  CHECK(doubles_of(engine.view(slice)->values) == std::vector<double>{1, 2});
  engine.receive(w1, 3, Init{7, slice, spec, bytes_of({8, 9})}, now);
  CHECK(doubles_of(engine.view(slice)->values) == std::vector<double>{1, 2});
}

TEST_CASE("another shape is refused also where its worker came before the first one") {
  ShardEngine engine(sync, "s0");
  engine.install(epoch_of(7, 2), now);
  engine.receive(w1, 1, Init{7, slice, {DType::float64, {3}}, {}}, now);
  engine.receive(w0, 2, Init{7, slice, spec, bytes_of({1, 2})}, now);
  const auto out = engine.take();
  REQUIRE(out.size() == 2);
  const auto& refused = std::get<Answer>(out[0].message);
  CHECK(out[0].to == "w1");
  CHECK(refused.kind == AnswerKind::wrong_spec);
  CHECK(refused.problem == "key 'w' is float64[2], worker w1 has float64[3]");
  CHECK(std::get<Answer>(out[1].message).kind == AnswerKind::created);
}

TEST_CASE("a value that is being sent does not change with the next update") {
  Server server(sync, 1);
  Push push = server.push(0, {3, 4});
  push.wants_value = true;
  server.engine.receive(w0, 1, push, now);
  const Answer sent = server.answer();
  server.engine.receive(w0, 2, server.push(1, {5, 6}), now);
  CHECK(doubles_of(*sent.values) == std::vector<double>{3, 4});
  CHECK(server.values() == std::vector<double>{5, 6});
}

TEST_CASE("of a key that does not fit into the memory of a server no slice is kept") {
  ShardRules rules = sync;
  Server server(rules, 1);
  // Five slices of fp32, of which three would fit: four bytes and their sum for each element.
  rules.memory_bytes = server.engine.bytes() + 3 * (slice_elements * 8 + bytes_beside_values);
  Server bounded(rules, 1);
  const std::uint64_t before = bounded.engine.bytes();
  const ValueSpec spec{DType::float32, {5 * slice_elements}};
  for (std::uint32_t index = 0; index < 5; ++index) {
    bounded.engine.receive(w0, index, Init{7, {"large", index}, spec, Bytes(slice_elements * 4)},
                           now);
    CHECK(bounded.answer().kind == AnswerKind::no_memory);
  }
  CHECK(bounded.engine.bytes() == before);
}

TEST_CASE("a key or an optimizer beyond the memory of a server is refused, and others go on") {
  ShardRules rules = sync;
  constexpr std::uint64_t beside = bytes_beside_values;
  rules.memory_bytes = 80 + 2 * beside;  // the key of Server takes 32: two values, and their sum
  Server server(rules, 1);
  const SliceId large{"large", 0};
  server.engine.receive(w0, 1, Init{7, large, {DType::float64, {4}}, bytes_of({1, 2, 3, 4})}, now);
  const Answer refused = server.answer();
  CHECK(refused.kind == AnswerKind::no_memory);
  CHECK(refused.problem == "key 'large', worker w0: server s0 holds " +
                               std::to_string(32 + beside) + " bytes, and " +
                               std::to_string(64 + beside) + " more are beyond its bound of " +
                               std::to_string(80 + 2 * beside) +
                               "; accepted: a larger kvstore.memory_bytes, or more servers");

  OptimizerOptions adam;
  adam.kind = OptimizerKind::adam;  // two arrays: 32 bytes
  const auto encoded = encode(adam);
  Push push = server.push(0, {1, 1});
  push.optimizer.assign(encoded.begin(), encoded.end());
  server.engine.receive(w0, 2, push, now);
  CHECK(server.answer().kind == AnswerKind::received);
  server.engine.receive(w0, 3, Init{7, large, {DType::float64, {1}}, bytes_of({1})}, now);
  CHECK(server.answer().kind == AnswerKind::created);  // all of it
  Push other = server.push(0, {1});
  other.slice = large;
  other.optimizer.assign(encoded.begin(), encoded.end());
  server.engine.receive(w0, 4, other, now);
  CHECK(server.answer().kind == AnswerKind::no_memory);
  CHECK(server.engine.bytes() == rules.memory_bytes);
}

}  // namespace
}  // namespace dpwa::kvstore
