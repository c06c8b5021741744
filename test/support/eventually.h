#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace dpwa::test {

// Longer than anything takes on a loaded machine: a test that gets there has failed.
inline constexpr std::chrono::seconds patience(20);

// Waits until `condition` holds; false when it does not within `limit`.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::nanoseconds limit = patience) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace dpwa::test
