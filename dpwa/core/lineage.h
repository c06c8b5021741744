#pragma once

#include "dpwa/core/progress.h"

namespace dpwa {

// Whether a node at `own` gives up its weights and takes those of `peer` in full, instead of
// blending.
//
// Nodes that could not see each other when they began (a network split, two nodes that both waited
// for a third) descend from different initial weights. The average of two such models is worse than
// either: hidden units play different roles in them. So different lineages are never blended; the
// one with less training behind it yields:
//   - no lineage yet: adopts any;      - same lineage: never adopts, the two may blend;
//   - otherwise the lower clock adopts the higher; at equal clocks the larger lineage the smaller.
// Of two nodes comparing the same pair of states exactly one yields. A peer without a lineage, or
// whose clock is not finite, is never adopted.
bool adopts(const Progress& own, const Progress& peer);

}  // namespace dpwa
