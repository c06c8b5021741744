#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

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

// Runs body(0) to body(count - 1) at once, each on a thread of its own, as processes would.
// Rethrows the first failure once all are done.
inline void at_once(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace dpwa::test
