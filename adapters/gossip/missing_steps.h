#pragma once

#include <atomic>
#include <optional>

#include "adapters/common/backward_hooks.h"
#include "adapters/torch_types.h"

namespace dpwa {

// Warns, once, of a program that makes backward passes and no step(), as one does that calls
// optimizer.step() in its place: gradients stay on the node, so it would train alone without an
// error. Adding up the passes of a step is allowed, so many have to come. Watches as long as it
// lives the last of the parameters that is trained.
class MissingSteps {
 public:
  static constexpr unsigned most_passes = 100;  // in one step

  explicit MissingSteps(const torch::nn::Module& model);

  void step() { passes_ = 0; }

 private:
  void passed();

  std::atomic<unsigned> passes_ = 0;  // since the last step; counted on the thread of the pass
  std::atomic<bool> warned_ = false;
  std::optional<BackwardHooks> hooks_;
};

}  // namespace dpwa
