#include "dpwa/rules/outliers.h"

#include <doctest/doctest.h>

#include <limits>

using dpwa::ClockGaps;
using dpwa::Outliers;

TEST_CASE("gross distances in a row are counted for each peer, until one is not") {
  Outliers outliers;
  CHECK(outliers.observe(1, 100, true) == 1);
  CHECK(outliers.observe(1, 100, true) == 2);
  CHECK(outliers.observe(0, 100, true) == 1);
  CHECK(outliers.observe(1, 99, true) == 3);
  CHECK(outliers.observe(1, 1, false) == 0);
  CHECK(outliers.observe(1, 100, true) == 1);
}

TEST_CASE("a peer that comes nearer is not counted, and one that turns back is") {
  Outliers outliers;
  CHECK(outliers.observe(0, 100, true) == 1);
  CHECK(outliers.observe(0, 50, true) == 0);
  CHECK(outliers.observe(0, 25, true) == 0);
  CHECK(outliers.observe(0, 100, true) == 2);
  CHECK(outliers.observe(0, 100, true) == 3);
}

TEST_CASE("an infinite distance counts each time") {
  Outliers outliers;
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(outliers.observe(0, infinity, true) == 1);
  CHECK(outliers.observe(0, infinity, true) == 2);
}

TEST_CASE("a peer that leaves its place takes its count along") {
  Outliers outliers;
  outliers.observe(0, 100, true);
  outliers.forget(0);
  CHECK(outliers.observe(0, 100, true) == 1);
}

TEST_CASE("a gap of the clocks is unusual beside those of the same peer") {
  ClockGaps gaps;
  CHECK_FALSE(gaps.is_unusual(0, 1000));  // nothing is known yet
  for (const double gap : {1.0, -1.0, 0.5, 2.0}) gaps.usual(0, gap);
  CHECK_FALSE(gaps.is_unusual(0, 3));
  CHECK(gaps.is_unusual(0, 40));
  CHECK(gaps.is_unusual(0, -40));
  for (int i = 0; i < 50; ++i) gaps.usual(1, 30);  // a slow peer
  CHECK_FALSE(gaps.is_unusual(1, 40));
  gaps.forget(0);
  CHECK_FALSE(gaps.is_unusual(0, 40));
}

TEST_CASE("a clock that is not a number explains nothing") {
  ClockGaps gaps;
  gaps.usual(0, std::numeric_limits<double>::quiet_NaN());
  gaps.usual(0, std::numeric_limits<double>::infinity());
  CHECK_FALSE(gaps.is_unusual(0, 5));
  gaps.usual(0, 1);
  CHECK_FALSE(gaps.is_unusual(0, std::numeric_limits<double>::quiet_NaN()));
}
