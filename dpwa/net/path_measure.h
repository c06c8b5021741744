#pragma once

#include <cstdint>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/net/peer_address.h"

namespace dpwa {

class Security;

// The way from a node that trains to this process.
struct PathMeasure {
  std::uint64_t bytes = 0;  // of its snapshot that came; 0: it gave none
  Duration time{};          // that they took, from the question on
  Duration round_trip{};    // the least, as the kernel has seen it; zero: it does not say
};

// Pulls up to `most_bytes` of its model as an observer, and throws them away. Blocks; no threads.
PathMeasure measure_path(const std::string& cluster, const PeerAddress& node,
                         std::uint64_t most_bytes, Duration timeout, const Security* security);

}  // namespace dpwa
