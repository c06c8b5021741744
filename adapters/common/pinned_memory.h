#pragma once

#include <c10/core/Device.h>

#include <cstddef>

#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {

// Zeroed host memory that this accelerator copies to and from by itself, of this size where pages
// can be locked; otherwise LibTorch's own, rounded up to a power of two, and of this process alone.
// `shared`: other processes of this host are to map it, where that is possible. Throws
// std::bad_alloc, and c10::Error where no accelerator is.
AlignedBuffer pinned_memory(std::size_t bytes, c10::Device device, bool shared = false);

// Lets the accelerator copy to and from this memory by itself. False: it cannot.
bool lock_pages_for(c10::Device device, AlignedBuffer& memory);

}  // namespace dpwa
