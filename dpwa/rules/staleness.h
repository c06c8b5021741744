#pragma once

#include <cmath>
#include <string>

#include "dpwa/rules/options.h"

namespace dpwa {

// Whether a peer's snapshot is too old to be blended into a model at `own_clock`: its clock lags by
// more than max_staleness, or one of the two is no number. A peer that stands still needs no rule:
// no version of a peer is blended twice (SeenBlocks).
inline bool is_stale(const StalenessOptions& options, double peer_clock, double own_clock) {
  if (!std::isfinite(peer_clock) || !std::isfinite(own_clock)) return true;
  return options.max_staleness > 0 && own_clock - peer_clock > options.max_staleness;
}

// The words for a snapshot that is not blended for this reason.
inline std::string words_for_stale(double clock) {
  return "is too far behind: clock " + std::to_string(clock);
}

}  // namespace dpwa
