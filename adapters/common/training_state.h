#pragma once

#include <string>
#include <vector>

#include "adapters/torch_types.h"

namespace dpwa {

// A module, which may be on the stack, and all of its parts. Outer parts first, because train() of
// a part also sets the parts in it.
std::vector<torch::nn::Module*> parts_of(torch::nn::Module& module);

// The training mode of each part of a module, because parts may have been frozen separately.
class TrainingModes {
 public:
  explicit TrainingModes(torch::nn::Module& module);

  // To the same module, or one of the same structure.
  void give_to(torch::nn::Module& module) const;

 private:
  std::vector<bool> modes_;
};

// A module is in evaluation mode as long as it lives.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module);
  ~EvaluationMode() { before_.give_to(module_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& module_;
  const TrainingModes before_;
};

// The options and the state, such as moments, of an optimizer.
std::string saved_state(const torch::optim::Optimizer& optimizer);
// Into an optimizer of the same class over the same parameters.
void load_state(torch::optim::Optimizer& optimizer, const std::string& state);

}  // namespace dpwa
