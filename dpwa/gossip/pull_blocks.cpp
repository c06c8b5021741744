#include "dpwa/gossip/pull_blocks.h"

#include <stdexcept>

#include "dpwa/snapshot/blocks.h"

namespace dpwa {

std::vector<ByteRange> pull_blocks(const Config& config, const Manifest& manifest) {
  try {
    return layer_blocks(manifest, config.gossip.blocks);
  } catch (const std::invalid_argument& why) {
    const std::string file = config.file.empty() ? "" : config.file.string() + ": ";
    throw ConfigError(file + "gossip.blocks: " + why.what());
  }
}

}  // namespace dpwa
