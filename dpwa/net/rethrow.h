#pragma once

#include <exception>
#include <new>
#include <utility>

namespace dpwa::net {

// For a coroutine that nobody waits for: a failed one is a defect of ours and must not pass unseen.
// run_io() logs it.
inline void rethrow(std::exception_ptr failure) {
  if (failure) std::rethrow_exception(failure);
}

// The same where one that memory was refused to is simply not there this time.
inline void rethrow_unless_refused(std::exception_ptr failure) {
  try {
    rethrow(std::move(failure));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace dpwa::net
