#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

// What the C++ peers of the benchmark share. They are not built with dpwa; C++17.
namespace dpwa::bench {

// User and system time of this process.
inline double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// `count` values on huge pages and touched, as dpwa's buffers are. Never freed.
inline float* make_vector(std::size_t count) {
  constexpr std::size_t alignment = std::size_t{2} << 20;
  const std::size_t bytes = (count * sizeof(float) + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<float*>(std::aligned_alloc(alignment, bytes));
  if (memory == nullptr) std::abort();
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::fill_n(memory, count, 0.1F);
  return memory;
}

}  // namespace dpwa::bench
