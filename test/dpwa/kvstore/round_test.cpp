#include "dpwa/kvstore/round.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/kvstore/optimizer.h"
#include "test/dpwa/kvstore/doubles.h"
#include "test/dpwa/kvstore/workers.h"

namespace dpwa::kvstore {
namespace {

using testing::bytes_of;
using testing::doubles_of;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double large = std::numeric_limits<double>::max();
using testing::w1;
using testing::w2;
using testing::w3;

Push push_of(double value, double weight = 1, Merge merge = Merge::mean) {
  Push push;
  push.values = bytes_of({value});
  push.weight = weight;
  push.merge = merge;
  return push;
}

// Of memory that outlives the round.
Push lent_push(const Bytes& values) {
  Push push = push_of(0);
  push.values.clear();
  push.lent = {values};
  return push;
}

Round round_of_one() {
  return Round({DType::float64, 1});
}

double value_of(const Round::Closed& closed) {
  return doubles_of(closed.change.gradient).at(0) * closed.change.scale;
}

}  // namespace

TEST_CASE("a round is the weighted mean, or the sum, of what its workers push") {
  for (const auto& [merge, expected] : {std::pair(Merge::mean, 4.0), std::pair(Merge::sum, 16.0)}) {
    Round round = round_of_one();
    CHECK(round.add(w2, push_of(1, 1, merge)));
    CHECK(round.add(w1, push_of(5, 3, merge)));
    CHECK(round.has(w1));
    CHECK_FALSE(round.has(w3));
    const Round::Closed closed = round.close(7);
    CHECK(value_of(closed) == expected);
    CHECK(closed.change.round == 8);
    CHECK(closed.change.advances == std::vector<Advance>{{w1, 8}, {w2, 8}});
    CHECK(closed.refused == 0);
  }
}

TEST_CASE("the optimizer of a round is that of its first worker by name") {
  Round round = round_of_one();
  for (const MemberId& worker : {w2, w1, w3}) {
    Push push = push_of(1);
    push.optimizer = Bytes(1, static_cast<std::byte>(worker.name.back()));
    round.add(worker, std::move(push));
  }
  CHECK(round.close(0).change.optimizer == Bytes(1, static_cast<std::byte>('1')));
}

TEST_CASE("a push that is not finite is absent, and the others are the mean") {
  Round round = round_of_one();
  CHECK(round.add(w1, push_of(2)));
  CHECK_FALSE(round.add(w2, push_of(infinite)));
  CHECK(round.is_absent(w2));
  const Round::Closed closed = round.close(0);
  CHECK(value_of(closed) == 2);
  CHECK(closed.change.advances.size() == 2);
}

TEST_CASE("pushes whose sum is not finite make no update, and each hears of it") {
  Round round = round_of_one();
  for (const MemberId& worker : {w1, w2}) {
    CHECK(round.add(worker, push_of(large, 1, Merge::sum)));
    round.wait({worker.name, 1, AnswerKind::counted, 0, false});
  }
  const Round::Closed closed = round.close(0);
  CHECK(closed.change.gradient.empty());
  CHECK(closed.refused == 2);
  for (const Waiter& waiter : closed.waiters) CHECK(waiter.kind == AnswerKind::not_finite);
}

TEST_CASE("lent parts are looked at when the round is closed") {
  const Bytes good = bytes_of({3});
  Bytes bad = bytes_of({1});
  Round round = round_of_one();
  CHECK(round.add(w1, lent_push(good)));
  CHECK(round.add(w2, lent_push(bad)));
  CHECK(round.add(w3, push_of(5)));
  round.wait({"w2", 1, AnswerKind::counted, 0, false});
  std::memcpy(bad.data(), &infinite, sizeof infinite);
  const Round::Closed closed = round.close(0);
  CHECK(value_of(closed) == 4);
  CHECK(closed.refused == 1);
  CHECK(closed.waiters.at(0).kind == AnswerKind::not_finite);
  CHECK(closed.change.advances.size() == 3);
}

TEST_CASE("a mean without an optimizer of pushes that count nothing is NaN") {
  Round weightless = round_of_one();
  weightless.add(w1, push_of(1, 0));
  CHECK(std::isnan(value_of(weightless.close(0))));
  Round not_finite = round_of_one();
  not_finite.add(w1, push_of(infinite));
  CHECK(std::isnan(value_of(not_finite.close(0))));
  Round sum = round_of_one();
  sum.add(w1, push_of(infinite, 1, Merge::sum));
  CHECK(sum.close(0).change.gradient.empty());
}

TEST_CASE("a round belongs to a snapshot unless one of its workers knew of it") {
  Round round = round_of_one();
  for (const auto& [worker, snapshot, epoch] : {std::tuple(w1, 2U, 9U), std::tuple(w2, 3U, 8U)}) {
    Push push = push_of(1);
    push.snapshot = snapshot;
    push.begun_in = epoch;
    round.add(worker, std::move(push));
  }
  CHECK(round.begun_in() == 8);
  CHECK(round.close(0).change.snapshot == 3);
}

TEST_CASE("a worker waits once") {
  Round round = round_of_one();
  round.add(w1, push_of(1));
  round.wait({"w1", 1, AnswerKind::counted, 0, true});
  round.wait({"w1", 2, AnswerKind::counted, 0, true});
  const Round::Closed closed = round.close(0);
  REQUIRE(closed.waiters.size() == 1);
  CHECK(closed.waiters[0].tag == 2);
}

}  // namespace dpwa::kvstore
