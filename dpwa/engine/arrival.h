#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/rules/outcome.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/progress.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa {

// A peer that was asked for parameters to blend, and that descends from other initial weights.
struct OtherLineage {
  PeerId peer = 0;
  std::string name;
  Progress progress;
};

// The result of a pull. With outcome `mixed` the landing buffer holds the parameters, and belongs
// to the trainer until it begins the next pull.
struct Arrival {
  Outcome outcome = Outcome::skipped;
  std::optional<PeerId> peer;  // that answered, or the last one tried
  std::string peer_name;
  bool full = false;   // of the whole model, frozen parameters too
  unsigned block = 0;  // as in RoundSpec
  Progress progress;   // the peer's
  Progress own;        // of the own snapshot that it was compared with
  kernels::PassStats stats;
  double factor_scale = 1;  // by the firewall, of the factor to blend with; below 1: clipped
  unsigned refused = 0;     // peers whose parameters the firewall kept out before this one
  std::vector<OtherLineage> other_lineages;  // peers that were passed over for it
  std::uint64_t bytes = 0;
  bool same_host = false;  // it came from the peer's memory
  bool alone = false;      // no peer answers: PeerTable::nobody_answers()
  // From the first peer asked to the last byte landed; the delay not counted.
  Duration took{};
};

}  // namespace dpwa
