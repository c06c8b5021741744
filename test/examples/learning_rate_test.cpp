#include "examples/train/learning_rate.h"

#include <doctest/doctest.h>

namespace dpwa::train {

TEST_CASE("each schedule begins at the given rate and only a constant one ends there") {
  for (const auto schedule : {Schedule::constant, Schedule::linear, Schedule::cooldown}) {
    CHECK(learning_rate(schedule, 0.1, 0.0) == 0.1);
    CHECK(learning_rate(schedule, 0.1, 1.0) == (schedule == Schedule::constant ? 0.1 : 0.0));
  }
}

TEST_CASE("the linear schedule is half way down at half the length") {
  CHECK(learning_rate(Schedule::linear, 0.1, 0.5) == doctest::Approx(0.05));
}

TEST_CASE("the cooldown schedule falls over the last fifth alone") {
  CHECK(learning_rate(Schedule::cooldown, 0.1, 0.79) == 0.1);
  CHECK(learning_rate(Schedule::cooldown, 0.1, 0.9) == doctest::Approx(0.05));
}

}  // namespace dpwa::train
