#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace dpwa::train {

// Wrong usage, data or set-up found before anything was started: one line, exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The error in one line; LibTorch appends a stack trace.
inline std::string one_line(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory";
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace dpwa::train
