#pragma once

#include <algorithm>

#include "dpwa/base/time.h"

namespace dpwa {

// How long a step takes: a moving average over about ten steps, in which a pause (an evaluation, a
// checkpoint) counts for no more than ten steps. Pure: time is an argument. One owner, one thread.
class StepInterval {
 public:
  // A step begins.
  void observe(TimePoint now) {
    if (seen_) {
      const Duration last = now - begun_;
      interval_ +=
          interval_ == Duration::zero() ? last : (std::min(last, 10 * interval_) - interval_) / 10;
    }
    begun_ = now;
    seen_ = true;
  }
  Duration get() const { return interval_; }  // zero before the second step

 private:
  bool seen_ = false;
  TimePoint begun_{};
  Duration interval_{};
};

}  // namespace dpwa
