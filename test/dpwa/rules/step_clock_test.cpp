#include "dpwa/rules/step_clock.h"

#include <doctest/doctest.h>

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using Part = StepClock::Part;
constexpr TimePoint start = TimePoint{} + 1h;

Duration spent(const StepClock& clock, Part part) {
  return clock.times().spent[static_cast<std::size_t>(part)];
}

// A step that publishes for 2 ms, computes for 5 ms and blends for 3 ms.
void step(StepClock& clock, TimePoint begin, Duration waited = 0ms) {
  clock.enter(Part::publish, begin);
  clock.enter(Part::compute, begin + 2ms);
  clock.enter(Part::blend, begin + 7ms);
  StepReport report;
  report.waited = waited;
  clock.end_step(report, begin + 10ms);
  CHECK(report.computed <= begin + 10ms - start);
}

}  // namespace

TEST_CASE("the parts of a step add up to its time, and what lies between steps is compute") {
  StepClock clock;
  step(clock, start);
  step(clock, start + 30ms);
  CHECK(clock.times().steps == 2);
  CHECK(spent(clock, Part::publish) == 4ms);
  CHECK(spent(clock, Part::compute) == 30ms);
  CHECK(spent(clock, Part::blend) == 6ms);
  CHECK(spent(clock, Part::wait) == 0ms);
}

TEST_CASE("what was waited is taken from the blend, then from the other parts, never twice") {
  StepClock clock;
  SUBCASE("within the blend") {
    step(clock, start, 2ms);
    CHECK(spent(clock, Part::blend) == 1ms);
  }
  SUBCASE("beyond it") {
    step(clock, start, 4ms);
    CHECK(spent(clock, Part::blend) == 0ms);
    CHECK(spent(clock, Part::publish) == 1ms);
  }
  SUBCASE("more than the step has") {
    step(clock, start, 1s);
    CHECK(spent(clock, Part::wait) == 10ms);
  }
  const auto times = clock.times();
  CHECK(times.spent[0] + times.spent[1] + times.spent[2] + times.spent[3] == 10ms);
}

TEST_CASE("a step under way does not count yet") {
  StepClock clock;
  clock.enter(Part::publish, start);
  clock.enter(Part::compute, start + 5ms);
  CHECK(clock.times().steps == 0);
  CHECK(spent(clock, Part::publish) == 0ms);
}

}  // namespace dpwa
