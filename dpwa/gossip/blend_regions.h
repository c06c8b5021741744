#pragma once

#include <cstddef>
#include <span>

#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/manifest.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa {

// Blends bytes `range` of what has landed into memory laid out by `manifest`: regions that
// interpolate by delta or lerp with `factor`, by the landing's mode; counters and carried tensors
// stay. `range` begins at a multiple of 64 and ends at one, or at the end of a tensor.
void blend_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                   std::span<const std::byte> landed, LandingMode mode, double factor);

// Raises the counters in memory to those of another model where they are larger; the rest stays.
// For the final average alone: in every blend, chains over nodes would count one step twice.
void take_larger_counters(const Manifest& manifest, std::span<std::byte> memory,
                          std::span<const std::byte> other);

// The same for the part of `range` within `landed_range`, and bytes `range` of the result go into
// `copy`, in one pass.
void blend_and_copy_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                            std::span<const std::byte> landed, ByteRange landed_range,
                            LandingMode mode, double factor, std::span<std::byte> copy,
                            kernels::Stores stores);

}  // namespace dpwa
