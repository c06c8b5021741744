#pragma once

#include <algorithm>
#include <chrono>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"

namespace dpwa {

// Exponential back-off. `failures` counts the failures in a row, 1 for the first.
struct Backoff {
  Duration initial = std::chrono::milliseconds(100);
  Duration max = std::chrono::seconds(5);
  double jitter = 0.5;  // the delay is drawn from [1 - jitter, 1 + jitter] times the nominal one

  constexpr Duration nominal(unsigned failures) const {
    Duration delay = std::min(initial, max);
    // Stops at the cap, so neither a long row of failures nor a huge cap can overflow.
    for (unsigned doubled = 1; doubled < failures && delay < max; ++doubled) {
      delay = delay > max / 2 ? max : delay * 2;
      if (delay == Duration::zero()) break;
    }
    return delay;
  }

  Duration delay(unsigned failures, Random& random) const {
    const double spread = std::clamp(jitter, 0.0, 1.0);
    return std::chrono::duration_cast<Duration>(nominal(failures) *
                                                random.uniform(1 - spread, 1 + spread));
  }
};

}  // namespace dpwa
