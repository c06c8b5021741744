#pragma once

#include <limits>

namespace dpwa {

// What a message can carry, whatever clocks peers state and however far a policy goes: finite and
// not negative.
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
