#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace dpwa::bench {

// The memory passes of a gossip step, written by hand over bare buffers: copy the parameters out
// into one of three snapshot buffers, add a difference to them. Each in `threads` equal slices at
// once. A call makes all and returns the nanoseconds of: the copy; the copy, then the blend in a
// pass of its own; both in one pass.
std::function<std::array<std::int64_t, 3>()> hand_written_passes(std::size_t bytes, int threads);

}  // namespace dpwa::bench
