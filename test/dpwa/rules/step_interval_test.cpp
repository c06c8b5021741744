#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "dpwa/rules/step_interval.h"

namespace dpwa {

using namespace std::chrono_literals;

TEST_CASE("the step interval is unknown before the second step and then that of the first") {
  StepInterval interval;
  CHECK(interval.get() == 0ns);
  interval.observe(TimePoint{} + 5s);
  CHECK(interval.get() == 0ns);
  interval.observe(TimePoint{} + 5s + 8ms);
  CHECK(interval.get() == 8ms);
}

TEST_CASE("the step interval is not moved by pauses, and follows a change of pace in eight steps") {
  StepInterval interval;
  TimePoint now{};
  for (int step = 0; step < 100; ++step) interval.observe(now += 2ms);
  CHECK(interval.get() == 2ms);
  for (int pause = 0; pause < 7; ++pause) interval.observe(now += 1h);
  CHECK(interval.get() == 2ms);
  for (int step = 0; step < 15; ++step) interval.observe(now += 2ms);
  for (int step = 0; step < 7; ++step) interval.observe(now += 10ms);
  CHECK(interval.get() == 2ms);
  interval.observe(now += 10ms);
  CHECK(interval.get() == 10ms);
}

TEST_CASE("the step interval is the middle one of steps that all differ") {
  StepInterval interval;
  TimePoint now{};
  interval.observe(now);
  for (const auto length : {5ms, 1ms, 9ms, 3ms, 7ms}) interval.observe(now += length);
  CHECK(interval.get() == 5ms);
}

TEST_CASE("pulls begin at every moment of a step alike, each near the one before") {
  Random random(1);
  PullMoment moment(random);
  constexpr int pulls = 20000;
  std::array<int, 10> tenths{};
  double before = moment.next(random);
  for (int pull = 0; pull < pulls; ++pull) {
    const double now = moment.next(random);
    REQUIRE(std::abs(now - before) <= 0.125);
    ++tenths.at(std::min<std::size_t>(9, static_cast<std::size_t>(10 * now)));
    before = now;
  }
  for (const int count : tenths) CHECK(count == doctest::Approx(pulls / 10).epsilon(0.05));
}

TEST_CASE("pulls of several nodes begin at moments of their own") {
  Random random(1), other(2);
  CHECK(PullMoment(random).next(random) != PullMoment(other).next(other));
}

TEST_CASE("being alone is said after ten seconds and then once a minute") {
  AloneWatch watch;
  const TimePoint from{};
  int warnings = 0;
  for (auto now = from; now <= from + 130s; now += 100ms) {
    const auto time = watch.observe(true, now);
    if (!time) continue;
    ++warnings;
    CHECK(*time == now - from);
    CHECK(now - from == 10s + (warnings - 1) * 60s);
  }
  CHECK(warnings == 3);
}

TEST_CASE("a peer that answers ends it") {
  AloneWatch watch;
  const TimePoint from{};
  CHECK_FALSE(watch.observe(true, from));
  CHECK(watch.since() == from);
  CHECK_FALSE(watch.observe(false, from + 9s));
  CHECK_FALSE(watch.since());
  CHECK_FALSE(watch.observe(true, from + 11s));
  CHECK_FALSE(watch.observe(true, from + 20s));
  CHECK(watch.observe(true, from + 21s) == 10s);
}

}  // namespace dpwa
