#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "adapters/torch_types.h"

namespace dpwa {

// The training mode of each part of a module, because parts may have been frozen separately. The
// module may be on the stack.
class TrainingModes {
 public:
  explicit TrainingModes(torch::nn::Module& module);

  // To the same module, or one of the same structure.
  void give_to(torch::nn::Module& module) const;

 private:
  std::vector<bool> modes_;
};

// Saves all state that training steps change, to restore it bit by bit: parameters, gradients,
// buffers, training modes, the optimizer's options and state, and the random generators of LibTorch
// (of the CPU and of the model's device). Parameters and buffers keep their identity and memory.
// Model and optimizer outlive this object. One thread.
class SavedTraining {
 public:
  SavedTraining(torch::nn::Module& module, torch::optim::Optimizer& optimizer);

  // As often as wanted.
  void restore() const;

 private:
  struct Generator {
    at::Generator generator;
    at::Tensor state;
  };

  torch::nn::Module& module_;
  torch::optim::Optimizer& optimizer_;
  std::vector<at::Tensor> values_;     // of parameters, then of buffers
  std::vector<at::Tensor> gradients_;  // undefined: none
  TrainingModes modes_;
  std::string optimizer_state_;
  std::vector<Generator> generators_;
};

}  // namespace dpwa
