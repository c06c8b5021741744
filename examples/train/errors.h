#pragma once

#include <stdexcept>

namespace dpwa::train {

// Wrong usage, data or set-up found before anything was started: one line, exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace dpwa::train
