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

// Limits a clock to values that a message can carry, finite and not negative, whatever clocks peers
// state and however far a policy goes.
constexpr double bounded_clock(double clock) {
  if (!(clock > 0)) return 0;
  return clock < std::numeric_limits<double>::max() ? clock : std::numeric_limits<double>::max();
}

// The original dpwa's clock: a float, +1 per publish, averaged by every blend.
constexpr double clock_after_publish(double clock) {
  return clock + 1.0;
}
// Lerp blend: the clock of the original.
constexpr double clock_after_lerp(double clock, double peer_clock, double factor) {
  return bounded_clock(factor * peer_clock + (1.0 - factor) * clock);
}
// Delta blend: moves with the parameters, by the difference to the own clock of the moment the pull
// began. The same as the lerp when nothing was published since; a late pull does not hold the clock
// back.
constexpr double clock_after_delta(double clock, double peer_clock, double own_clock_then,
                                   double factor) {
  return bounded_clock(clock + factor * (peer_clock - own_clock_then));
}

}  // namespace dpwa
