#pragma once

#include <cmath>
#include <string>
#include <unordered_map>

#include "dpwa/base/time.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/progress.h"

namespace dpwa {

// Decides whether a peer's snapshot is fresh enough to blend. A stuck peer that still serves is
// worse than a dead one: it pulls everybody back to where it stopped. Two bounds:
//   stale:  own clock - peer clock > max_staleness;
//   frozen: the peer's clock has not moved for max_frozen although ours has moved meanwhile. One
//   from 2^53 on, where a lie has brought it, stands still whatever the peer does: it is no sign.
// Pure: time is an argument. One owner, one thread.
class StalenessGuard {
 public:
  explicit StalenessGuard(StalenessOptions options) : options_(options) {}

  // Records what `peer` served and says whether it may be blended into a model at `own_clock`.
  bool accept(PeerId peer, double peer_clock, double own_clock, TimePoint now);
  // Another node has taken the place of `peer`.
  void forget(PeerId peer) { sightings_.erase(peer); }

 private:
  struct Sighting {
    double peer_clock;
    double own_clock;  // ours when the peer's clock was first seen at peer_clock
    TimePoint since;
    // In either direction: blending a frozen peer drags our own clock back towards where it
    // stopped.
    bool own_moved = false;
  };
  StalenessOptions options_;
  std::unordered_map<PeerId, Sighting> sightings_;
};

// The words for a snapshot that is not blended for this reason.
inline std::string words_for_stale(double clock) {
  return "is too far behind, or its clock does not advance: clock " + std::to_string(clock);
}

inline bool StalenessGuard::accept(PeerId peer, double peer_clock, double own_clock,
                                   TimePoint now) {
  if (!std::isfinite(peer_clock) || !std::isfinite(own_clock)) return false;

  const auto [found, first] = sightings_.try_emplace(peer, Sighting{peer_clock, own_clock, now});
  Sighting& sighting = found->second;
  // A clock that goes down moves as well: restarts and blends lower it.
  if (!first && sighting.peer_clock != peer_clock) sighting = {peer_clock, own_clock, now};
  if (sighting.own_clock != own_clock) sighting.own_moved = true;

  const bool stale = options_.max_staleness > 0 && own_clock - peer_clock > options_.max_staleness;
  const bool counts_steps = peer_clock + 1 != peer_clock;
  const bool frozen = options_.max_frozen > Duration::zero() && sighting.own_moved &&
                      counts_steps && now - sighting.since >= options_.max_frozen;
  return !stale && !frozen;
}

}  // namespace dpwa
