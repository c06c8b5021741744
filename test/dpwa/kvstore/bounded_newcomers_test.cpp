#include <doctest/doctest.h>

#include "test/dpwa/kvstore/shard.h"
#include "test/dpwa/kvstore/workers.h"

// Workers that come while others train with a bound on the staleness, where each counts the steps
// of its keys apart: where they begin, and who waits for them.

namespace dpwa::kvstore {
namespace {

using testing::Shard;

using testing::w1;
using testing::w2;
using testing::w3;

// Of the first key, by the number of steps that the worker has made.
struct Pulls {
  explicit Pulls(Shard& shard) : shard_(shard) {}
  void ask(const MemberId& worker, std::uint64_t clock, std::uint64_t tag) {
    const Pull message{shard_.engine.epoch().number, {Key(1), 0}, clock, any_version};
    shard_.engine.receive(worker, tag, message, shard_.now);
  }
  bool answered(const MemberId& worker, std::uint64_t clock) {
    ask(worker, clock, ++tag_);
    return shard_.answers().contains(tag_);
  }

 private:
  Shard& shard_;
  std::uint64_t tag_ = 100;
};

TEST_CASE("with a bound on the staleness a worker that comes begins where the slowest is") {
  Shard shard(rules_of(KvstoreType::dist_ssp, 3));
  Pulls pulls(shard);
  for (std::uint64_t step = 0; step < 40; ++step) shard.push(w1, 1, step, 7);
  shard.install(8, {{w1, 0, 7}, {w2, 0, 8}});
  SUBCASE("nobody waits for it before it has come to the key") {
    for (std::uint64_t step = 40; step < 50; ++step) shard.push(w1, 1, step, 8);
    CHECK(pulls.answered(w1, 50));
    CHECK(shard.init(w2, 1, 21).at(21).step == 50);
  }
  SUBCASE("it does not wait for itself, and the others wait for it from there on") {
    CHECK(shard.init(w2, 1, 21).at(21).step == 40);
    CHECK(pulls.answered(w2, 40));
    for (std::uint64_t step = 40; step < 44; ++step) shard.push(w1, 1, step, 8);
    CHECK(pulls.answered(w1, 43));
    pulls.ask(w1, 44, 31);
    CHECK(shard.answers().empty());
    shard.push(w2, 1, 40, 8);
    pulls.ask(w2, 41, 32);
    const auto answers = shard.answers();
    CHECK(answers.contains(32));
    CHECK(pulls.answered(w1, 44));
  }
  SUBCASE("one that only pulls goes on with the others") {
    CHECK(shard.init(w2, 1, 21).at(21).step == 40);
    for (std::uint64_t step = 40; step < 50; ++step) {
      shard.push(w1, 1, step, 8);
      CHECK(pulls.answered(w1, step + 1));
      pulls.ask(w2, step, 41);
      CHECK(shard.answers().at(41).step == step + 1);
    }
  }
  SUBCASE("another server that takes over the key learns it from the pull") {
    CHECK(shard.init(w2, 1, 21).at(21).step == 40);
    shard.install(9, {{w1, 0, 7}, {w2, 0, 8}, {w3, 0, 9}});
    CHECK(pulls.answered(w3, 40));
    CHECK(pulls.answered(w2, 40));
  }
}

TEST_CASE("with a bound on the staleness a run that begins waits for the first push of each") {
  Shard shard(rules_of(KvstoreType::dist_ssp, 3));
  Pulls pulls(shard);
  shard.install(8, {{w1, 0, 7}, {w2, 0, 7}});
  for (std::uint64_t step = 0; step < 4; ++step) shard.push(w1, 1, step, 8);
  CHECK(pulls.answered(w1, 3));
  pulls.ask(w1, 4, 31);
  CHECK(shard.answers().empty());
  // It is told to begin where the other one is, and does not wait for itself either.
  const auto answers = shard.init(w2, 1, 21);
  CHECK(answers.at(21).step == 4);
  CHECK(answers.contains(31));
  CHECK(pulls.answered(w2, 4));
}

}  // namespace
}  // namespace dpwa::kvstore
