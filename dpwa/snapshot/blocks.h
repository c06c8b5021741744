#pragma once

#include <cstddef>
#include <vector>

#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

inline constexpr std::size_t max_blocks = 64;

// What an ordinary pull moves, cut into at most `count` consecutive blocks of whole tensors, of
// sizes as equal as the tensors allow: each block begins at a tensor and ends where the next one
// begins. A model of fewer tensors gives fewer blocks, one that exchanges nothing a single empty
// one. Together the blocks are bytes [0, manifest.exchange_bytes()). `count` is 1 to max_blocks.
std::vector<ByteRange> layer_blocks(const Manifest& manifest, std::size_t count);

}  // namespace dpwa
