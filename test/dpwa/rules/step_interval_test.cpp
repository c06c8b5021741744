#include "dpwa/rules/step_interval.h"

#include <doctest/doctest.h>

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

}  // namespace dpwa
