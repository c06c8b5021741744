#pragma once

#include <cstddef>
#include <span>

#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"
#include "interpolation/kernels/dtype.h"

namespace dpwa {

// Whether no element is a NaN or an infinity. Floating-point dtypes only.
bool is_finite(DType dtype, std::span<const std::byte> values);

// The first tensor of the model, in its order, that takes part in blends and has an element within
// `range` that is not finite; null when there is none.
const TensorSpec* first_not_finite(const Manifest& manifest, std::span<const std::byte> snapshot,
                                   ByteRange range);

}  // namespace dpwa
