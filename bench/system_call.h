#pragma once

#include <cerrno>
#include <system_error>

namespace dpwa::bench {

// After a system call that failed: throws std::system_error with errno.
[[noreturn]] inline void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace dpwa::bench
