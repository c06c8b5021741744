#pragma once

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"

namespace dpwa {

// Exponential back-off with jitter. `failures` counts the failures in a row, 1 for the first.
struct Backoff {
  Duration initial = std::chrono::milliseconds(100);
  Duration max = std::chrono::seconds(5);
  double jitter = 0.5;  // the delay is drawn from [1 - jitter, 1 + jitter] times the nominal one

  Duration delay(unsigned failures, Random& random) const;
};

}  // namespace dpwa
