#pragma once

#include <exception>

namespace dpwa::net {

// For a coroutine that nobody waits for: a failed one is a defect of ours and must not pass unseen.
inline void rethrow(std::exception_ptr failure) {
  if (failure) std::rethrow_exception(failure);
}

}  // namespace dpwa::net
