#pragma once

#include <chrono>
#include <functional>

namespace dpwa {

// Monotonic time, always passed in: the node core never reads a clock.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

// What the time is: std::chrono::steady_clock::now, but in tests. Called on several threads.
using TimeSource = std::function<TimePoint()>;

}  // namespace dpwa
