#pragma once

#include <cstddef>

#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {

// Zeroed host memory that an accelerator copies to and from by itself, of this size where pages can
// be locked; otherwise LibTorch's own, rounded up to a power of two, and of this process alone.
// `shared`: other processes of this host are to map it, where that is possible. Throws
// std::bad_alloc, and c10::Error where no accelerator is.
AlignedBuffer pinned_memory(std::size_t bytes, bool shared = false);

}  // namespace dpwa
