#pragma once

#include <cstddef>
#include <span>

#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The distance between a snapshot and one whose interpolated values within `range` are each one
// step of their dtype away, 2^-7 of the value for bfloat16, 2^-10 for float16: what rounding can do
// to equal models. 0 when a value is not finite. One pass over memory.
double rounding_distance(const Manifest& manifest, std::span<const std::byte> snapshot,
                         ByteRange range);

}  // namespace dpwa
