#pragma once

#include <cstddef>

#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa {

// The functions of a device's runtime that lock pages of host memory, so that the device copies to
// and from them by itself.
struct PageLockCalls {
  int (*lock)(void* data, std::size_t bytes, unsigned flags) = nullptr;
  int (*unlock)(void* data) = nullptr;
  int (*take_error)() = nullptr;  // the last one, which is forgotten
};

// Those of the CUDA runtime, if this process has loaded it.
const PageLockCalls& page_lock_calls();

// Locks the pages of a buffer until it is freed. False: the runtime refuses, or is not there.
bool lock_pages(AlignedBuffer& buffer, const PageLockCalls& calls = page_lock_calls());

}  // namespace dpwa
