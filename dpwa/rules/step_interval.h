#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/base/wait_lines.h"

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

// At which moment of a step its pull begins. The moments move slowly through the step, forth and
// back, so that each is as likely as any other and two pulls in a row are about one step apart. A
// peer of the same pace then has a new snapshot for nearly every pull. With moments that are drawn
// for each step alone, a fifth of the pulls from an only peer find the snapshot that was blended
// already. Those are the pulls that would have brought an old snapshot, so the blends that are left
// move the clocks ahead (docs/ALGORITHMS.md, "Pulls that overlap training").
// Pure: randomness is an argument. One owner, one thread.
class PullMoment {
 public:
  explicit PullMoment(Random& random) : place_(random.uniform(0, 2)) {}

  double next(Random& random);  // in [0, 1], as a share of the step

 private:
  static constexpr double furthest = 0.125;  // from one pull to the next
  double place_;                             // up to 1: on the way forth; up to 2: on the way back
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
    if (!since_) since_ = now;
    if (!lines_.due(*since_, now, first_warning, between_warnings)) return std::nullopt;
    return now - *since_;
  }

  std::optional<TimePoint> since() const { return since_; }  // none: some peer answers

 private:
  static constexpr Duration first_warning = std::chrono::seconds(10);
  static constexpr Duration between_warnings = std::chrono::minutes(1);
  std::optional<TimePoint> since_;
  WaitLines lines_;
};

}  // namespace dpwa
