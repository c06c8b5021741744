#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/snapshot/blocks.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The blocks of the model that pulls ask for in turn, as many as gossip.blocks says. Throws
// ConfigError when the model is too small for so many.
inline std::vector<ByteRange> pull_blocks(const Config& config, const Manifest& manifest) {
  try {
    return layer_blocks(manifest, config.gossip.blocks);
  } catch (const std::invalid_argument& why) {
    fail_at_key(config, "gossip.blocks", why.what());
  }
}

}  // namespace dpwa
