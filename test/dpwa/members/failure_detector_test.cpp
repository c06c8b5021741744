#include "dpwa/members/failure_detector.h"

#include <doctest/doctest.h>

#include <chrono>

namespace dpwa::members {

using namespace std::chrono_literals;

TEST_CASE("how long a silent process is waited for is learned from signs of life") {
  FailureDetector learned({.beat = 100ms});
  CHECK(learned.lost_after() == 2500ms);
  for (int i = 0; i < 10; ++i) learned.heard_after(5ms);
  CHECK(learned.lost_after() == 2500ms);
  for (int i = 0; i < 64; ++i) learned.heard_after(500ms);
  CHECK(learned.lost_after() == 5s);
  CHECK(learned.late_after() == 1s);
  learned.heard_after(1h);  // one that was frozen
  CHECK(learned.lost_after() == 5s);
  for (int i = 0; i < 64; ++i) learned.heard_after(1h);
  CHECK(learned.lost_after() == 30s);
}

TEST_CASE("a time that is given counts, but never less than some beats") {
  FailureDetector given({.beat = 100ms, .lost_after = 700ms});
  for (int i = 0; i < 64; ++i) given.heard_after(500ms);
  CHECK(given.lost_after() == 700ms);
  CHECK(given.late_after() == 400ms);
  CHECK(FailureDetector({.beat = 400ms, .lost_after = 700ms}).lost_after() == 2400ms);
}

TEST_CASE("a process that did not run knows for how long") {
  FailureDetector detector({.beat = 100ms});
  CHECK(detector.look(TimePoint(1h)) == 0s);
  CHECK(detector.look(TimePoint(1h + 400ms)) == 0s);
  CHECK(detector.look(TimePoint(1h + 5400ms)) == 5s);
  CHECK(detector.look(TimePoint(1h + 5450ms)) == 0s);
}

}  // namespace dpwa::members
