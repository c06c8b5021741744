#pragma once

#include <chrono>
#include <string>

#include "dpwa/base/time.h"

namespace dpwa {

// When a wait that goes on deserves a line in the log: soon after it began, then rarely. The lines
// of waits that follow one another are as rare as those of one wait. Pure.
class WaitLines {
 public:
  static constexpr Duration first_after = std::chrono::seconds(2);
  static constexpr Duration then_every = std::chrono::seconds(30);

  // For a wait that began then.
  bool due(TimePoint began, TimePoint now, Duration first = first_after,
           Duration between = then_every) {
    const bool is_first = told_ < began;
    if (is_first ? now - began < first : now - told_ < between) return false;
    told_ = now;
    return true;
  }

 private:
  TimePoint told_ = TimePoint::min();
};

// The same for a wait whose reason may change: soon after it began, once the reason is another one,
// and each minute. Pure.
class WaitReasons {
 public:
  explicit WaitReasons(TimePoint began) : looked_(began) {}

  // `reason`: of now; empty: unknown, which deserves no line.
  bool due(const std::string& reason, TimePoint now) {
    const bool is_new = reason != told_;
    if (reason.empty() || now - looked_ < (is_new ? between_reasons : then_every)) return false;
    looked_ = now;
    told_ = reason;
    return true;
  }

 private:
  static constexpr Duration between_reasons = std::chrono::seconds(2);
  static constexpr Duration then_every = std::chrono::minutes(1);

  TimePoint looked_;  // of the last line; before the first: of the begin
  std::string told_;
};

// "12 s so far and 60 s at most", of a wait that began then. `until`: its end; TimePoint::max():
// some day.
inline std::string words_for_wait(TimePoint began, TimePoint until, TimePoint now) {
  using std::chrono::seconds;
  std::string words = std::to_string((now - began) / seconds(1)) + " s so far";
  if (until != TimePoint::max())
    words +=
        " and " + std::to_string(std::chrono::ceil<seconds>(until - began).count()) + " s at most";
  return words;
}

}  // namespace dpwa
