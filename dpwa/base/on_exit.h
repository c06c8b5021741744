#pragma once

#include <utility>

namespace dpwa {

// Calls `action` at the end of its scope, also of a coroutine that an exception ends.
template <typename Action>
class OnExit {
 public:
  explicit OnExit(Action action) : action_(std::move(action)) {}
  ~OnExit() { action_(); }
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;

 private:
  Action action_;
};

}  // namespace dpwa
