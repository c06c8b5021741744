#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "interpolation/kernels/dtype.h"

namespace dpwa::bench {

// Overwrites the bytes with floating-point values like those of weights: of either sign, with
// magnitudes from 1/16 to 1/8, so that none is slow to compute with. Another seed gives other
// values. Bytes at the end that hold no whole element become zero.
void fill_with_values(std::span<std::byte> bytes, std::uint64_t seed, DType dtype = DType::float32);

}  // namespace dpwa::bench
