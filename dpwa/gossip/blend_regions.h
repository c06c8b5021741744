#pragma once

#include <cstddef>
#include <span>

#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/manifest.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa {

// Blends bytes `range` of what has landed into memory laid out by `manifest`, each region by its
// rule: delta or lerp with `factor` by the landing's mode, maximum for counters; carried tensors
// stay. `range` begins at a multiple of 64 and ends at one, or at the end of a tensor.
void blend_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                   std::span<const std::byte> landed, LandingMode mode, double factor);

// The same for the part of `range` within `landed_range`, and bytes `range` of the result go into
// `copy`, in one pass.
void blend_and_copy_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                            std::span<const std::byte> landed, ByteRange landed_range,
                            LandingMode mode, double factor, std::span<std::byte> copy,
                            kernels::Stores stores);

}  // namespace dpwa
