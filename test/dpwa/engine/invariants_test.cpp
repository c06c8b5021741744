// What the engines of a node guarantee by themselves: each of their invariants broken once.

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "dpwa/engine/final_average.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/engine/start_comparison.h"
#include "dpwa/engine/start_up.h"
#include "dpwa/engine/trainer_state.h"
#include "interpolation/registry.h"
#include "test/support/broken_invariant.h"

namespace dpwa {

template <>
struct InvariantTest<FinalAverage> {
  static void fold_again(FinalAverage& average) {
    average.order_.resize(1);
    average.count_ = 1;
    average.fold();
  }
};

namespace {

using namespace std::chrono_literals;
using test::breaks;
constexpr TimePoint ten{10h};

TrainerState trainer_of(TrainerOptions options = {}) {
  static Random random(1);
  return {std::move(options),
          GuardedInterpolation(interpolation_registry().make("constant", {}), 0.5), random};
}

}  // namespace

TEST_CASE("a pull engine hears answers of the peer that it asks, for a block of the model") {
  PullEngine engine({}, {"w1"});
  RoundSpec spec;
  spec.block = max_blocks;
  CHECK(breaks("a pull is of a block of the model", [&] { engine.begin(spec); }));
  Answer answer;
  CHECK(breaks("a head is of the answer of a peer that is asked", [&] { engine.head({}, 1); }));
  CHECK(
      breaks("parameters land from a peer that is asked", [&] { engine.landed(answer, {}, {}); }));
  CHECK(breaks("an attempt that is settled is of a peer that is asked",
               [&] { engine.settle(answer, false, false, ten); }));
}

TEST_CASE("a step blends or takes over once at most, by a share") {
  TrainerOptions without_blocks;
  without_blocks.block_shares.clear();
  CHECK(breaks("a model has blocks to pull", [&] { trainer_of(without_blocks); }));
  TrainerState trainer = trainer_of();
  Arrival arrival;
  arrival.outcome = Outcome::mixed;
  arrival.block = 1;
  CHECK(breaks("what is blended is a block of the model", [&] { trainer.blend(arrival, 1); }));
  arrival.block = 0;
  arrival.factor_scale = 3;
  CHECK(breaks("a factor is a share of the peer's parameters", [&] { trainer.blend(arrival, 1); }));
  arrival.factor_scale = 1;
  trainer.blend(arrival, 1);
  CHECK(breaks("a step blends once at most", [&] { trainer.blend(arrival, 1); }));
  CHECK(breaks("a step takes weights over once at most", [&] { trainer.take_over(arrival, ten); }));
  trainer.end_step(false, 0s);
  trainer.take_over(arrival, ten);
}

TEST_CASE("a comparison of weights hears what it asks for") {
  CHECK(
      breaks("weights are compared with those of two others", [] { StartComparison(1, {2}, {}); }));
  StartComparison comparison(1, {2, 3}, {});
  CHECK(breaks("what is published was to be", [&] { comparison.published(); }));
  CHECK(breaks("a distance was asked for", [&] { comparison.measured(1.0); }));
  comparison.took_over(TakeOver::taken);
  CHECK(breaks("weights are taken over while no distance is measured",
               [&] { comparison.took_over(TakeOver::taken); }));
  CHECK(breaks("a distance is of a peer that is asked",
               [] { DistanceSurvey({}, 1, 1).answer(std::nullopt); }));
  CHECK(breaks("a distance is of a block that was asked for",
               [] { DistanceSurvey({1}, 1, 0).answer(1.0); }));
}

TEST_CASE("the start of a node hears of an event in the phase that asked for it") {
  StartUp start({}, ten);
  CHECK(breaks("a node visits where its start asks for it", [&] { start.visited({}, ten); }));
  CHECK(breaks("a node greets where its start asks for it", [&] { start.greeted({}, ten); }));
  CHECK(breaks("weights are pulled where the start asks for them",
               [&] { start.pulled(TakeOver::taken, 1, 1, ten); }));
  CHECK(breaks("a distance is measured where the start asks for it", [&] { start.measured(1.0); }));
  start.published(true);
  CHECK(breaks("a node publishes where its start asks for it", [&] { start.published(true); }));
}

TEST_CASE("the end of a node hears of an event in the phase that asked for it") {
  FinalAverage average({}, ten);
  CHECK(breaks("a node publishes its final parameters where it is asked to",
               [&] { average.published(true, ten); }));
  CHECK(breaks("a node greets where its end asks for it", [&] { average.greeted({}, ten); }));
  CHECK(breaks("a buffer is taken where the end asks for it",
               [&] { average.took_buffer(true, ten); }));
  CHECK(breaks("a model is pulled where the end asks for it",
               [&] { average.pulled(std::nullopt, false, 0, ten); }));
  CHECK(breaks("a model is sketched where the end asks for it", [&] { average.sketched({}); }));
  CHECK(breaks("parameters are replaced by a mean of some models", [&] { average.replaced(0); }));
  CHECK(breaks("each model is folded once",
               [&] { InvariantTest<FinalAverage>::fold_again(average); }));
}

}  // namespace dpwa
