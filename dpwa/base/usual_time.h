#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"

namespace dpwa {

// The median; of an even number the higher of the two in the middle. Reorders `times`, which must
// not be empty.
inline Duration upper_median(std::span<Duration> times) {
  DPWA_INVARIANT(!times.empty(), "a median is of some times");
  const auto median = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), median, times.end());
  return *median;
}

// How long something usually takes at most, from the last 64 times that it took: the median, and
// eight times the median of the distances from it. A few very long times change little.
class UsualTime {
 public:
  void add(Duration time) {
    times_.push_back(time);
    if (times_.size() > remembered) times_.pop_front();
  }
  std::size_t known() const { return times_.size(); }
  Duration at_most() const {  // of at least one
    std::vector<Duration> times(times_.begin(), times_.end());
    const Duration middle = upper_median(times);
    for (Duration& time : times) time = time > middle ? time - middle : middle - time;
    return middle + 8 * upper_median(times);
  }

 private:
  static constexpr std::size_t remembered = 64;
  std::deque<Duration> times_;
};

}  // namespace dpwa
