#include "dpwa/core/lineage.h"

#include <cmath>

namespace dpwa {

bool adopts(const Progress& own, const Progress& peer) {
  if (peer.lineage == 0 || peer.lineage == own.lineage || !std::isfinite(peer.clock)) return false;
  if (own.lineage == 0 || !std::isfinite(own.clock)) return true;
  if (own.clock != peer.clock) return own.clock < peer.clock;
  return own.lineage > peer.lineage;
}

}  // namespace dpwa
