#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "dpwa/base/time.h"

namespace dpwa {

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
// What is faster than this share of the timeout is never late: a peer of another host or region is
// many times as slow as one of the same rack, and must be asked as often.
constexpr int late_share = 16;

// Of two in the middle the higher: where half of the others are near, the far half is not late.
// Reorders `times`, of which there is at least one.
inline Duration upper_median(std::span<Duration> times) {
  const auto median = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), median, times.end());
  return *median;
}

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

// For how long a peer that is slower than others is left alone after a late answer, of which
// `lately` were among its last eight answers: 8 times as long as it took, then 16, then 32. So it
// holds up no more than a ninth of the pulls from its first late answer on, and is still asked.
inline Duration rest_after(Duration took, unsigned lately) {
  return took * 8 * (1 << std::min(lately > 0 ? lately - 1 : 0, 2U));
}

}  // namespace dpwa
