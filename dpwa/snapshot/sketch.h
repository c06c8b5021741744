#pragma once

#include <cstddef>
#include <span>

#include "dpwa/rules/model_sketch.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The sketch of a snapshot's interpolated values, gaps included; `model`: the whole snapshot. One
// pass over memory. The same bits on every processor.
ModelSketch sketch_of(const Manifest& manifest, std::span<const std::byte> model);

}  // namespace dpwa
