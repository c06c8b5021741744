#pragma once

#include <cstdint>

namespace dpwa {

// What a gossip node keeps over a restart, beside its parameters.
struct GossipState {
  double clock = 0;
  std::uint64_t lineage = 0;      // descent of the weights; 0 = none yet
  std::uint64_t incarnation = 0;  // of the process that wrote it
};

}  // namespace dpwa
