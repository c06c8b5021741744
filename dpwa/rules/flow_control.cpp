#include "dpwa/rules/flow_control.h"

#include <algorithm>

namespace dpwa {

Duration Backoff::delay(unsigned failures, Random& random) const {
  Duration nominal = std::min(initial, max);
  // Stops at the cap, so neither a long row of failures nor a huge cap can overflow.
  for (unsigned doubled = 1; doubled < failures && nominal < max; ++doubled) {
    nominal = nominal > max / 2 ? max : nominal * 2;
    if (nominal == Duration::zero()) break;
  }
  const double spread = std::clamp(jitter, 0.0, 1.0);
  return std::chrono::duration_cast<Duration>(nominal * random.uniform(1 - spread, 1 + spread));
}

}  // namespace dpwa
