#pragma once

#include <cstddef>
#include <vector>

#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// The most blocks that the model can be cut into, at least 1: every cut lies on a multiple of 64
// bytes, so each block holds whole elements of every dtype, and int8 groups of fp32 stay whole.
std::size_t most_blocks(const Manifest& manifest);

// The bytes that an ordinary pull moves, cut into exactly `count` consecutive blocks of nearly
// equal sizes. A layer is the run of tensors whose names are equal up to the last '.': weight, bias
// and statistics of one module. Cuts go between layers; a layer larger than its share (1/count of
// the whole) is cut between its tensors, and a tensor larger than that inside. Small models may
// need cuts beyond that to reach `count`. Together the blocks are bytes [0,
// manifest.exchange_bytes()). Throws std::invalid_argument when `count` is not in 1 to
// most_blocks().
std::vector<ByteRange> layer_blocks(const Manifest& manifest, std::size_t count);

}  // namespace dpwa
