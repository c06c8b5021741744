#include "dpwa/rules/staleness.h"

#include <doctest/doctest.h>

#include <limits>

#include "dpwa/rules/progress.h"

using dpwa::is_stale;
using dpwa::StalenessOptions;

TEST_CASE("a peer may lag up to the staleness bound and no further") {
  const StalenessOptions bound{5};
  CHECK_FALSE(is_stale(bound, 95, 100));
  CHECK(is_stale(bound, 94.5, 100));
  CHECK_FALSE(is_stale(bound, 500, 100));  // ahead is never stale
  CHECK_FALSE(is_stale(StalenessOptions{}, 0, 1e9));
}

TEST_CASE("clocks that are not finite are stale under every bound") {
  for (const double clock :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    CHECK(is_stale(StalenessOptions{}, clock, 100));
    CHECK(is_stale(StalenessOptions{}, 50, clock));
  }
}

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
