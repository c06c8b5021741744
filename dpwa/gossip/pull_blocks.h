#pragma once

#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The blocks of the model that pulls ask for in turn, as many as gossip.blocks says. Throws
// ConfigError when the model is too small for so many.
std::vector<ByteRange> pull_blocks(const Config& config, const Manifest& manifest);

}  // namespace dpwa
