#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "dpwa/base/backoff.h"
#include "dpwa/base/time.h"
#include "dpwa/base/usual_time.h"

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

// How long a peer took to answer.
struct AnswerTime {
  Duration took{};
  Duration allowed{};      // the timeout of the round
  bool complete = false;   // a whole snapshot, not a word that there is none
  bool same_host = false;  // through the peer's memory, not over the network

  // Whether it says something about the times of other peers: a snapshot over the network.
  bool compares() const { return complete && !same_host; }
};

// An answer this many times as slow as those of the other peers is late.
constexpr int late_multiple = 8;
// An answer faster than this share of the timeout is never late: a peer in another region is many
// times slower than one in the same rack, and must be asked as often.
constexpr int late_share = 16;

// Whether is_late() depends on the times of other peers, or is true without them.
inline bool may_be_late(const AnswerTime& answer) {
  return answer.allowed > Duration::zero() && answer.took > answer.allowed / late_share;
}

// Whether an answer came so late that the peer should be asked more rarely: after half of the
// timeout, or, of whatever kind it is, after 8 times the median of `others`, the last snapshots of
// other peers over the network, of which there are at least two. Reorders `others`.
inline bool is_late(const AnswerTime& answer, std::span<Duration> others) {
  if (!may_be_late(answer)) return false;
  if (answer.took > answer.allowed / 2) return true;
  if (answer.same_host || others.size() < 2) return false;
  return answer.took / late_multiple > upper_median(others);
}

// Whether it is the peer that is slow, and not everything: a late answer took more than twice the
// median of `others`, the last snapshots of other peers, of this host too. Reorders `others`.
inline bool is_slower(const AnswerTime& answer, std::span<Duration> others) {
  return !others.empty() && answer.took / 2 > upper_median(others);
}

// How long a peer that is slower than others is not asked after a late answer, when `lately` of its
// last eight answers were late: 8 times as long as the answer took, then 16, then 32 times. So it
// delays at most a ninth of the pulls from its first late answer on, and is still asked.
inline Duration rest_after(Duration took, unsigned lately) {
  return Backoff{took * 8, took * 32}.nominal(lately);
}

}  // namespace dpwa
