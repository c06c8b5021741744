#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dpwa/rules/distance_bound.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// The treatment of parameters at a given distance.
struct DistanceVerdict {
  double bound = 0;       // tau; 0 while there is none
  double scale = 1;       // of the interpolation factor: tau / distance when clipped
  bool beyond = false;    // of the bound
  bool refused = false;   // not to be blended
  bool unproven = false;  // not to be blended yet: no other peer's distance to compare with
  bool gross = false;     // far beyond the bound, and most other peers are near
  bool offends = false;   // gross again and again
};

// The last decision before a peer's parameters touch the model (docs/FIREWALL.md): whether they are
// too far away. Whether they are finite and how far away they are is known from the pass that
// landed them. Memory grows with the peers that have sent something. Pure. One owner, one thread.
class Firewall {
 public:
  // A distance of this many times the bound is gross, while those of most other peers are within
  // the bound. Honest nodes hardly ever reach it.
  static constexpr double gross_bounds = DistanceBound::first_multiple;
  // Gross distances in a row that are an offence. A slow node is far away now and then, and one
  // that was suspended until its own blends have brought it back.
  static constexpr unsigned offends_after = 3;

  Firewall(const FirewallOptions& options, std::size_t peers) : options_(options), peers_(peers) {}

  // A place for one more peer, or for another than before.
  void put(PeerId peer);

  // The peer is a new process, not the one whose parameters were blended: it may have begun with
  // any weights.
  void restarted(PeerId peer);

  // The own snapshot that the next distance is measured from has this version. After many more
  // steps without a snapshot of a peer than usual this node itself may be far from all others, so
  // that the first of them is not held to be the one that is.
  void at_version(std::uint64_t own);

  // Judges a distance of block `block` (0 to 63; 0 when the model travels whole); each block has
  // its own distances. The distance enters the window. A gross one is refused by clip too, and one
  // that is too large for a number under every policy: a blend might overflow.
  DistanceVerdict judge(PeerId peer, unsigned block, double distance,
                        const DistanceBound::Floor& floor = {});
  // The own parameters were replaced: earlier distances mean nothing now.
  void replaced();
  // A peer sent what is no number.
  void not_finite() { ++counters_.not_finite; }

  struct Counters {
    std::uint64_t warned = 0;      // blended although beyond the bound
    std::uint64_t clipped = 0;     // blended in part
    std::uint64_t refused = 0;     // not blended, for their distance
    std::uint64_t not_finite = 0;  // not blended, for a NaN or an infinity
  };
  const Counters& counters() const { return counters_; }

 private:
  bool acts() const;

  const FirewallOptions options_;
  std::vector<DistanceBound> bounds_;  // by block, as they are met
  PerPeer<unsigned> gross_;            // in a row, of peers whose last distance was
  std::size_t peers_;
  std::uint64_t version_ = 0;  // own, at the last distance; 0: none
  double usual_steps_ = 1;     // from one distance to the next
  Counters counters_;
};

}  // namespace dpwa
