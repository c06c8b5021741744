#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/rules/per_peer.h"

namespace dpwa {

// Which connections to peers are kept: those used last. In a cluster of a thousand nodes, each with
// its connections to all others, everybody would have a thousand inbound, more than they admit.
// Pure; one owner, one thread.
class KeptConnections {
 public:
  explicit KeptConnections(std::size_t most) : most_(most) {}

  // The connection to `peer` is in use now: the one to close for it, if there are too many.
  std::optional<PeerId> use(PeerId peer) {
    std::erase(recent_, peer);
    recent_.push_back(peer);
    if (recent_.size() <= most_) return std::nullopt;
    const PeerId oldest = recent_.front();
    recent_.erase(recent_.begin());
    return oldest;
  }

 private:
  const std::size_t most_;
  std::vector<PeerId> recent_;  // used last at the end
};

}  // namespace dpwa
