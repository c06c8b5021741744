#pragma once

#include <chrono>

namespace dpwa {

// Monotonic time, always passed in: the node core never reads a clock.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

}  // namespace dpwa
