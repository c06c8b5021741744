#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace dpwa {

// Hooks into the backward pass of some parameters, as long as it lives. The autograd engine calls
// both functions on the thread that runs backward(). Hooks that are made later run later.
class BackwardHooks {
 public:
  // `added(i)`: the gradient of parameter i is complete. `before_adding()`: something is about to
  // be added to a gradient; may throw, which ends backward().
  BackwardHooks(const std::vector<at::Tensor>& parameters,
                const std::function<void(std::size_t)>& added,
                const std::function<void()>& before_adding);
  ~BackwardHooks();
  BackwardHooks(const BackwardHooks&) = delete;
  BackwardHooks& operator=(const BackwardHooks&) = delete;

 private:
  std::vector<std::function<void()>> removals_;  // one for each hook
};

// For `added`: throws std::invalid_argument, with one line for the user, if the gradient of the
// parameter of this name is sparse, which back ends that average gradients do not send.
void require_dense_gradient(const at::Tensor& parameter, const std::string& name);

}  // namespace dpwa
