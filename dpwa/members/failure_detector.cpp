#include "dpwa/members/failure_detector.h"

#include <algorithm>
#include <utility>

namespace dpwa::members {
namespace {

using namespace std::chrono_literals;

constexpr int stands_still = 5;  // beats between two looks: this process did not run
constexpr int least_lost = 6;    // beats
constexpr int least_late = 4;

}  // namespace

Duration FailureDetector::look(TimePoint now) {
  const TimePoint before = std::exchange(looked_, now);
  const bool stood_still = before != TimePoint{} && now - before > stands_still * options_.beat;
  return stood_still ? now - before : Duration::zero();
}

Duration FailureDetector::at_least(int beats, Duration time) const {
  return std::max<Duration>(time, beats * options_.beat);
}

Duration FailureDetector::lost_after() const {
  if (options_.lost_after > Duration::zero()) return at_least(least_lost, options_.lost_after);
  const Duration usual = gaps_.known() == 0 ? Duration::zero() : gaps_.at_most();
  return at_least(least_lost, std::clamp<Duration>(10 * usual, 2500ms, 30s));
}

Duration FailureDetector::late_after() const {
  return at_least(least_late, std::clamp<Duration>(lost_after() / 3, 400ms, 1s));
}

}  // namespace dpwa::members
