#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "adapters/torch_types.h"
#include "dpwa/kvworker/worker_optimizer.h"

namespace dpwa::kvstore {

// The index of the parameter group of each parameter of an optimizer, by its identity.
std::unordered_map<const void*, std::size_t> groups_of(const torch::optim::Optimizer& optimizer);

// An optimizer of LibTorch, for the length of a call. A constant one only tells of itself.
class TorchOptimizer final : public WorkerOptimizer {
 public:
  // Both outlive it.
  TorchOptimizer(const torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& trained);

  OptimizerTerms terms() const override;
  OptimizerState state(std::size_t trained, const OptimizerOptions& options,
                       bool used) const override;
  void step() override;
  std::vector<const void*> stepped() const override;
  // Shares the tensors of the state. The optimizer may end before it.
  std::unique_ptr<OptimizerContent> copy() const override;
  void give(std::size_t trained, const OptimizerOptions& options,
            const OptimizerState& state) override;
  void forget() override;

 private:
  torch::optim::Optimizer& optimizer_;
  const std::vector<at::Tensor>& trained_;
};

}  // namespace dpwa::kvstore
