#pragma once

#include <cstdint>

#include "dpwa/base/time.h"

namespace dpwa {

// What becomes of a peer's parameters that are much further away than usual.
enum class DistancePolicy {
  off,     // blended
  warn,    // blended, counted and logged
  clip,    // blended as if they lay at the bound, in the same direction
  refuse,  // not blended; the round asks another peer
};

struct FirewallOptions {
  DistancePolicy distance = DistancePolicy::clip;
  double distance_multiple = 2;        // the bound, in medians of recent distances; >= 1
  std::uint32_t distance_samples = 8;  // before the bound holds; 1 to DistanceBound::window
  std::uint32_t quarantine_after = 3;  // offences in a row; 0 = never
  Duration quarantine = std::chrono::seconds(2);      // the first; each next one twice as long
  Duration quarantine_max = std::chrono::minutes(5);  // the longest
};

}  // namespace dpwa
