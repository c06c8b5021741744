#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "interpolation/kernels/dtype.h"

namespace dpwa::bench {

// Overwrites the bytes with values of a floating-point dtype as weights have them: of either sign,
// magnitudes from 1/16 to 1/8, none that is slow to compute with. Another seed gives other values.
// A rest that holds no element becomes zero.
void fill_with_values(std::span<std::byte> bytes, std::uint64_t seed, DType dtype = DType::float32);

}  // namespace dpwa::bench
