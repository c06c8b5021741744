#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/snapshot/aligned_buffer.h"
#include "interpolation/kernels/dtype.h"

namespace dpwa::bench {

// The memory of one thread: vectors of equal length out of cache, and a staging buffer in it.
struct Vectors {
  Vectors(std::size_t bytes, DType dtype, std::uint64_t seed);

  static constexpr std::size_t staging_bytes = 512 << 10;

  AlignedBuffer parameters;
  AlignedBuffer peer;
  AlignedBuffer snapshots[3];  // the last one doubles as the landing
  AlignedBuffer staging;
  std::size_t next_snapshot = 0;
};

// One pass over the vectors.
struct Pass {
  std::string name;
  std::string meaning;  // for people
  DType dtype;
  std::function<void(Vectors&)> run;
};

// All passes of docs/PERFORMANCE.md, "Limits of the machine".
std::vector<Pass> memory_passes();

// GB/s of one vector's bytes, all threads together, each on vectors of its own, for about
// `seconds`.
double rate_of(const Pass& pass, std::vector<Vectors>& threads, double seconds);

}  // namespace dpwa::bench
