#pragma once

#include <stdexcept>

namespace dpwa {

// Under a back end that sends gradients: throws std::logic_error, with one line for the user, for a
// backward pass whose gradients would be added to those that have left.
[[noreturn]] inline void refuse_second_pass() {
  throw std::logic_error(
      "a second backward pass before step(): its gradients would stay on this node; accepted: "
      "step() of the adapter in place of that of the optimizer, and accumulate() around all but "
      "the last pass of a step");
}

}  // namespace dpwa
