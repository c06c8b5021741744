#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

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

// When to warn that no peer answers: after ten seconds, then once a minute. Pure: time is an
// argument. One owner, one thread.
class AloneWatch {
 public:
  // Called after each pull. Returns for how long no peer has answered, when a warning is due.
  std::optional<Duration> observe(bool alone, TimePoint now) {
    if (!alone) {
      since_.reset();
      return std::nullopt;
    }
    if (!since_) {
      since_ = now;
      due_ = now + first_warning;
    }
    if (now < due_) return std::nullopt;
    due_ = now + between_warnings;
    return now - *since_;
  }

  std::optional<TimePoint> since() const { return since_; }  // none: some peer answers

 private:
  static constexpr Duration first_warning = std::chrono::seconds(10);
  static constexpr Duration between_warnings = std::chrono::minutes(1);
  std::optional<TimePoint> since_;
  TimePoint due_{};
};

}  // namespace dpwa
