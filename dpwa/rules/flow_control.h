#pragma once

#include <algorithm>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"

namespace dpwa {

// Scores of peers, with the constants of the original dpwa (loudinthecloud/dpwa), where only
// success raises a score: there a peer that failed ten times is never chosen again beside sound
// ones, so it can never succeed either, and two halves of a healed network stay apart for ever.
// Hence `recovery`.
struct FlowControl {
  double initial = 1000;
  double min = 10;
  double max = 1000;
  double on_success = 10;
  double on_failure = -100;
  double recovery_per_second = 10;  // regained after failures; 0 = none

  double after_success(double score) const { return std::clamp(score + on_success, min, max); }
  double after_failure(double score) const { return std::clamp(score + on_failure, min, max); }
  // Forgives what failures took, up to the initial score; what success earned is kept.
  double after_time(double score, double seconds) const {
    return std::max(score, std::min(initial, score + recovery_per_second * std::max(seconds, 0.0)));
  }
};

// Exponential back-off with jitter. `failures` counts the failures in a row, 1 for the first.
struct Backoff {
  Duration initial = std::chrono::milliseconds(100);
  Duration max = std::chrono::seconds(5);
  double jitter = 0.5;  // the delay is drawn from [1 - jitter, 1 + jitter] times the nominal one

  Duration delay(unsigned failures, Random& random) const;
};

}  // namespace dpwa
