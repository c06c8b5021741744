#pragma once

#include <string>

#include "examples/train/errors.h"

namespace dpwa::test {

// The message of the UsageError that `action` throws; empty when it throws none.
template <typename Action>
std::string usage_error_of(Action action) {
  try {
    action();
  } catch (const train::UsageError& error) {
    return error.what();
  }
  return {};
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dpwa::test
