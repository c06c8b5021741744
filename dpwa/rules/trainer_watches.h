#pragma once

#include <chrono>
#include <optional>

#include "dpwa/base/time.h"

namespace dpwa {

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
