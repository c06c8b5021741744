#pragma once

#include <algorithm>
#include <chrono>

#include "dpwa/base/time.h"

namespace dpwa::kvstore {

// A process of the store that is silent for this long counts as gone, unless the cluster file has
// another time (kvstore.lost_after_ms).
inline constexpr Duration default_lost_after = std::chrono::seconds(2);

// The time from one beat of a process to the next: at most an eighth of the time after which it
// would count as gone, and at most 250 ms.
constexpr Duration beat_interval(Duration lost_after) {
  return std::min<Duration>(std::chrono::milliseconds(250), lost_after / 8);
}

}  // namespace dpwa::kvstore
