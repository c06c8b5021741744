#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "dpwa/base/time.h"

namespace dpwa {

// How long a step of this trainer usually takes: the median of the last steps, which no evaluation,
// checkpoint or wait for a processor moves. Pure: time is an argument. One owner, one thread.
class StepInterval {
 public:
  static constexpr std::size_t steps = 15;  // a new pace counts after half of them

  void observe(TimePoint now);  // a step begins
  Duration get() const;         // zero before the second step

 private:
  std::optional<TimePoint> begun_;
  std::array<Duration, steps> lengths_{};
  std::size_t seen_ = 0;  // lengths in all; the last ones are kept
};

}  // namespace dpwa
