#pragma once

#include <algorithm>
#include <chrono>

#include "dpwa/base/time.h"

namespace dpwa {

// Bounds a rate: `per_second` tokens flow in, at most one second's worth is kept. Pure: the time is
// an argument, and does not go backwards.
class TokenBucket {
 public:
  // `per_second` 0: no bound.
  TokenBucket(double per_second, TimePoint now)
      : per_second_(per_second), tokens_(per_second), at_(now) {}

  // Takes a token, on credit if there is none; returns how long to wait until it is paid for.
  Duration take(TimePoint now) {
    if (per_second_ <= 0) return Duration::zero();
    const std::chrono::duration<double> since = now - at_;
    tokens_ = std::min(per_second_, tokens_ + since.count() * per_second_) - 1;
    at_ = now;
    if (tokens_ >= 0) return Duration::zero();
    return std::chrono::ceil<Duration>(std::chrono::duration<double>(-tokens_ / per_second_));
  }

 private:
  double per_second_;
  double tokens_;
  TimePoint at_;
};

}  // namespace dpwa
