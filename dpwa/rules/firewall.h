#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/rules/distance_bound.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/per_peer.h"
#include "dpwa/rules/quarantine.h"

namespace dpwa {

// The treatment of parameters at a given distance.
struct DistanceVerdict {
  double bound = 0;       // tau; 0 while there is none
  double scale = 1;       // of the interpolation factor: tau / distance when clipped
  bool beyond = false;    // of the bound
  bool refused = false;   // not to be blended
  bool unproven = false;  // not to be blended yet: no other peer's distance to compare with
  bool gross = false;     // so far beyond that honest nodes hardly ever are
  bool reported = false;  // gross again and again, and no pause explains it: worth a line
};

// The last decision before a peer's parameters touch the model (docs/FIREWALL.md): whether they are
// too far away, and which peers are to be left alone. Whether they are finite and how far away they
// are is known from the pass that landed them. Memory grows with the peers that have sent
// something. Pure: time is an argument. One owner, one thread.
class Firewall {
 public:
  // A distance of this many times the bound is gross. Honest nodes hardly ever reach it, so it
  // counts as an offence.
  static constexpr double gross_bounds = DistanceBound::first_multiple;
  // Gross distances in a row, of a peer that does not come nearer, that are worth a line.
  static constexpr unsigned reported_after = 3;
  // The same, and for an offence too, while an unusual gap between the clocks explains the
  // distance: one of the two stood still, or the peer lies about its clock.
  static constexpr unsigned explained_until = 8;
  // The shortest quarantine, in snapshots that land: where steps take seconds, a quarantine of
  // seconds would have no effect.
  static constexpr int quarantine_landings = 20;

  Firewall(const FirewallOptions& options, std::size_t peers);

  // A place for one more peer, or for another than before.
  void put(PeerId peer);

  // The peer is a new process, not the one whose parameters were blended: it may have begun with
  // any weights.
  void restarted(PeerId peer);

  // Judges a distance of block `block` (0 to 63; 0 when the model travels whole); each block has
  // its own distances. The distance enters the window. A distance that is too large for a number is
  // refused under every policy: a blend might overflow. `clock_gap`: in steps, of the peer's
  // snapshot and the own one.
  DistanceVerdict judge(PeerId peer, unsigned block, double distance, double clock_gap = 0);
  // The own parameters were replaced: earlier distances mean nothing now.
  void replaced();

  // A pull brought something to blend, or failed. Offences are parameters that are not finite,
  // bytes that break the protocol, and a gross distance, clipped or refused, while those of most
  // other peers are within the bound: where many seem far away, it is this node that is. Returns
  // until when the peer must not be asked, if it is in quarantine.
  std::optional<TimePoint> succeeded(PeerId peer, const DistanceVerdict& verdict, TimePoint now);
  std::optional<TimePoint> failed(PeerId peer, PeerFailure failure, TimePoint now);

  struct Counters {
    std::uint64_t warned = 0;      // blended although beyond the bound
    std::uint64_t clipped = 0;     // blended in part
    std::uint64_t refused = 0;     // not blended, for their distance
    std::uint64_t not_finite = 0;  // not blended, for a NaN or an infinity
  };
  const Counters& counters() const { return counters_; }
  const Quarantine::Record& record(PeerId peer) const { return quarantine_.at(peer); }

 private:
  enum class Standing : std::uint8_t { within, beyond, offending };

  bool acts() const;
  DistanceVerdict judge_infinite(PeerId peer, unsigned block);
  // Sets what tells a pause from an attack.
  void judge_outlier(PeerId peer, unsigned block, double distance, double clock_gap,
                     DistanceVerdict& verdict);
  bool most_others_are_within(PeerId peer) const;
  void set_near(PeerId peer);
  bool is_after_lull(PeerId peer) const;  // and has not been near since
  std::optional<TimePoint> offence(PeerId peer, bool deliberate, TimePoint now);
  std::optional<TimePoint> offended(PeerId peer, TimePoint now);  // at a gross distance
  // A snapshot of this peer has been judged. After a lull all other nodes may seem far away.
  void landed(PeerId peer, TimePoint now);

  const FirewallOptions options_;
  std::vector<DistanceBound> bounds_;  // by block, as they are met
  std::vector<Outliers> outliers_;     // by block, likewise
  ClockGaps clock_gaps_;
  Lulls lulls_;
  std::size_t peers_;
  bool lull_ended_ = false;      // ever
  PeerSet near_;                 // or new, since the last lull; nothing before the first
  PerPeer<Standing> standings_;  // as last judged; none: not known
  Quarantine quarantine_;
  Counters counters_;
};

}  // namespace dpwa
