#include "dpwa/rules/sketch_pace.h"

#include <doctest/doctest.h>

namespace dpwa {

TEST_CASE("a sketch is made once in a second of the wall clock, at the same moment by all") {
  SketchPace pace;
  CHECK(pace.take(1'000'999'000));
  CHECK_FALSE(pace.take(1'000'999'900));
  CHECK(pace.take(1'001'000'000));
  CHECK_FALSE(pace.take(1'001'900'000));
  CHECK(pace.take(5'000'000'000));
  CHECK(pace.take(4'000'000'000));  // the clock was put back
}

TEST_CASE("what a sketch costs is 0.5 % of the time at most, by the least that one took") {
  SketchPace pace;
  CHECK(pace.period() == std::chrono::seconds(1));
  pace.took(std::chrono::milliseconds(61));
  CHECK(pace.period() == std::chrono::seconds(16));
  pace.took(std::chrono::milliseconds(9));
  CHECK(pace.period() == std::chrono::seconds(2));
  pace.took(std::chrono::milliseconds(40));
  CHECK(pace.period() == std::chrono::seconds(2));
  pace.took(std::chrono::milliseconds(5));
  CHECK(pace.period() == std::chrono::seconds(1));
  CHECK(pace.take(2'000'000));
  CHECK_FALSE(pace.take(2'999'999));
}

}  // namespace dpwa
