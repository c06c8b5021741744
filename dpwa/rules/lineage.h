#pragma once

#include <map>
#include <span>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/rules/progress.h"

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
// It ranks the weights that nodes begin with. Once a node trains, a claim of a clock alone is not
// enough: yields() below.
bool adopts(const Progress& own, const Progress& peer);

// What another node of the cluster file, one that answers, said of itself last.
struct LineageReport {
  std::uint64_t lineage = 0;  // 0 = not heard yet
  double clock = 0;
};

// Whether a node that trains gives up its weights for those of `peer`: towards the lineage that
// more of the answering nodes of the file report, at equal counts that of the higher clock, then
// the smaller one. `others`: all but this node, `peer` included. `own_counts`: this node is of the
// file. A node that has not been heard yet counts for the own lineage, unless `heard_enough`.
bool yields(const Progress& own, const Progress& peer, std::span<const LineageReport> others,
            bool own_counts, bool heard_enough);

// How often a node that trains may take over the weights of one and the same peer: again after a
// minute, then after twice as long each time, up to an hour. And of two nodes that take over from
// each other at the same time, the one of the larger lineage does. Pure. One owner, one thread.
class TakeoverLimit {
 public:
  bool allows(const std::string& peer, TimePoint now) const;
  // Whether taking over may end a mutual takeover: `peer` has had our weights in full at `given`.
  static bool may_cross(const Progress& own, const Progress& peer, TimePoint given, TimePoint now);
  void took(const std::string& peer, TimePoint now);

 private:
  struct Record {
    unsigned count = 0;
    TimePoint again = TimePoint::min();
  };
  std::map<std::string, Record> peers_;
};

}  // namespace dpwa
