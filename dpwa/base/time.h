#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace dpwa {

// Monotonic time, always passed in: the node core never reads a clock.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

// The clock: std::chrono::steady_clock::now, except in tests. Called on several threads.
using TimeSource = std::function<TimePoint()>;

// Microseconds since the Unix epoch. This clock may jump, so use it only for the names of processes
// (incarnations), for seeds and for what people read. Measure durations with TimePoint.
inline std::uint64_t wall_clock_us() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

}  // namespace dpwa
