#pragma once

#include <string>

#include "adapters/torch_types.h"
#include "dpwa/collective/replica.h"

namespace dpwa::collective {

// An optimizer of LibTorch, which outlives it.
class TorchOptimizer final : public OptimizerState {
 public:
  explicit TorchOptimizer(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {}

  Signature words() const override;
  std::string state_words() const override;
  std::string save() const override;
  void load(const std::string& saved) override;

 private:
  torch::optim::Optimizer& optimizer_;
};

}  // namespace dpwa::collective
