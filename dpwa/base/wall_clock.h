#pragma once

#include <chrono>
#include <cstdint>

namespace dpwa {

// Microseconds since the Unix epoch. It may jump: nothing but names of processes (incarnations),
// seeds and what people read is made of it; time that passes is a TimePoint (base/time.h).
inline std::uint64_t wall_clock_us() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

}  // namespace dpwa
