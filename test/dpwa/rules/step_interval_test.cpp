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

TEST_CASE("the step interval follows a change of pace and counts a pause for ten steps at most") {
  StepInterval interval;
  TimePoint now{};
  for (int step = 0; step < 100; ++step) interval.observe(now += 2ms);
  CHECK(interval.get() == 2ms);
  interval.observe(now += 1h);
  CHECK(interval.get() == 3800us);
  for (int step = 0; step < 100; ++step) interval.observe(now += 10ms);
  CHECK(interval.get() > 9900us);
  CHECK(interval.get() <= 10ms);
}

}  // namespace dpwa
