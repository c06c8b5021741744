#pragma once

#include <cstdint>
#include <limits>

namespace dpwa {

// How far a node has come: travels with every snapshot.
struct Progress {
  std::uint64_t version = 0;  // publishes of this incarnation; 0 = nothing published yet
  std::uint64_t lineage = 0;  // which initial weights these descend from; 0 = none yet
  double clock = 0;           // +1 per publish, averaged by every blend (the original dpwa's clock)
  double loss = std::numeric_limits<double>::quiet_NaN();  // last training loss; NaN = not known
  double weight = 1;                                       // push-sum weight
  std::int64_t time_us = 0;  // wall clock of the publish, microseconds since the epoch
  bool final = false;        // the node has finished training
};

}  // namespace dpwa
