#pragma once

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

}  // namespace dpwa
