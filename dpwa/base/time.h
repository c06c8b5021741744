#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace dpwa {

// Monotonic time, always passed in: the node core never reads a clock.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

// What the time is: std::chrono::steady_clock::now, but in tests. Called on several threads.
using TimeSource = std::function<TimePoint()>;

// Microseconds since the Unix epoch. It may jump: nothing but names of processes (incarnations),
// seeds and what people read is made of it; time that passes is a TimePoint.
inline std::uint64_t wall_clock_us() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

}  // namespace dpwa
