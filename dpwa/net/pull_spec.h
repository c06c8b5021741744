#pragma once

#include <optional>

#include "dpwa/engine/arrival.h"
#include "dpwa/engine/exchange.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/landing.h"

namespace dpwa {

// A round of pulls, and how its parameters land. The defaults are an ordinary gossip round over the
// whole model.
struct PullSpec : RoundSpec {
  std::optional<ByteRange> range;  // of the block, 0 if not said; none: all that is moved
  LandingMode mode = LandingMode::difference;
};

// Everything of one peer as values: to take over its weights.
inline PullSpec full_pull(PeerId peer, Duration timeout) {
  PullSpec spec;
  spec.exchange = take_over;
  spec.peer = peer;
  spec.mode = LandingMode::values;
  spec.timeout = timeout;
  return spec;
}

}  // namespace dpwa
