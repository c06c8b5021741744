#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/rules/outcome.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/progress.h"
#include "dpwa/snapshot/landing.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa {

// What a pull is to bring. The defaults are an ordinary gossip round over the whole model.
struct PullSpec {
  std::optional<PeerId> peer;      // none: the peer table chooses, and tries others after a failure
  bool full = false;               // frozen parameters too
  std::optional<ByteRange> range;  // one block of the model; none: all of what it moves
  unsigned block = 0;              // its index
  bool for_final_average = false;
  LandingMode mode = LandingMode::difference;
  Duration timeout = std::chrono::milliseconds(500);  // the one deadline of the round
  bool judge_staleness = true;
  bool blends = true;  // false: it is only compared, and may be pulled again
  Duration delay{};    // before the first peer is asked; the timeout begins after it
};

// Everything of one peer as values, however stale: to take over its weights.
inline PullSpec full_pull(PeerId peer, Duration timeout) {
  PullSpec spec;
  spec.peer = peer;
  spec.full = true;
  spec.mode = LandingMode::values;
  spec.timeout = timeout;
  spec.judge_staleness = false;
  return spec;
}

// What a peer said of itself that was asked for parameters to blend, and that descends from other
// initial weights.
struct OtherLineage {
  PeerId peer = 0;
  std::string name;
  Progress progress;
};

// What a pull brought. With outcome `mixed` the landing buffer holds the parameters, and belongs to
// the trainer until it begins the next pull.
struct Arrival {
  Outcome outcome = Outcome::skipped;
  std::optional<PeerId> peer;  // that answered, or the last one tried
  std::string peer_name;
  bool full = false;   // a full pull
  unsigned block = 0;  // as in PullSpec
  Progress progress;   // the peer's
  Progress own;        // of the own snapshot that it was compared with
  kernels::PassStats stats;
  double factor_scale = 1;  // by the firewall, of the factor to blend with; below 1: clipped
  unsigned refused = 0;     // peers whose parameters the firewall kept out before this one
  std::vector<OtherLineage> other_lineages;  // peers that were passed over for it
  std::uint64_t bytes = 0;
  bool same_host = false;  // it came from the peer's memory
  bool alone = false;      // no peer answers: PeerTable::nobody_answers()
  // On the Tx thread, from the first peer asked to the last byte landed; the delay not counted.
  Duration took{};
};

}  // namespace dpwa
