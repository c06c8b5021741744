#include "dpwa/rules/progress.h"

#include <doctest/doctest.h>

#include <limits>

TEST_CASE("a publish advances the clock by one") {
  CHECK(dpwa::clock_after_publish(2.5) == 3.5);
}

TEST_CASE("a blend averages the clocks as it averages the parameters") {
  CHECK(dpwa::clock_after_lerp(10, 20, 0.0) == 10);
  CHECK(dpwa::clock_after_lerp(10, 20, 0.25) == 12.5);
  CHECK(dpwa::clock_after_lerp(10, 20, 1.0) == 20);
}

TEST_CASE("no clock of a peer makes the own one infinite or negative") {
  constexpr double most = std::numeric_limits<double>::max();
  CHECK(dpwa::clock_after_delta(most, most, 0, 1.0) == most);
  CHECK(dpwa::clock_after_delta(1, 0, 10, 0.5) == 0);
  CHECK(dpwa::clock_after_lerp(10, 0, 2.0) == 0);
}
