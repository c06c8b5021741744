#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "adapters/common/training_state.h"
#include "adapters/torch_types.h"

namespace dpwa {

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
