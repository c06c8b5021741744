#include "examples/train/learning_rate.h"

#include <doctest/doctest.h>

namespace dpwa::train {

TEST_CASE("each schedule begins at the given rate and ends where it should") {
  for (const auto schedule : {Schedule::constant, Schedule::linear, Schedule::taper}) {
    CHECK(learning_rate(schedule, 0.1, 0.0) == 0.1);
  }
  CHECK(learning_rate(Schedule::constant, 0.1, 1.0) == 0.1);
  CHECK(learning_rate(Schedule::linear, 0.1, 1.0) == 0.0);
  CHECK(learning_rate(Schedule::taper, 0.1, 1.0) == doctest::Approx(0.05));
}

TEST_CASE("the linear schedule is half way down at half the length") {
  CHECK(learning_rate(Schedule::linear, 0.1, 0.5) == doctest::Approx(0.05));
}

TEST_CASE("the taper is half way to its floor at half the length") {
  CHECK(learning_rate(Schedule::taper, 0.1, 0.5) == doctest::Approx(0.075));
}

}  // namespace dpwa::train
