#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "adapters/kvstore/key_states.h"
#include "adapters/torch_types.h"
#include "dpwa/kvstore/messages.h"

namespace dpwa::kvstore {

// The index of the parameter group of each parameter of an optimizer, by its identity.
std::unordered_map<const void*, std::size_t> groups_of(const torch::optim::Optimizer& optimizer);

// The optimizer of a program in the form that the servers receive with every push: the name, and
// the numbers of the group of the parameter.
class OptimizerTerms {
 public:
  OptimizerTerms() = default;
  // Throws KVStoreError as options_of() does.
  OptimizerTerms(const torch::optim::Optimizer& optimizer,
                 const std::vector<at::Tensor>& parameters);

  // The options of the parameter with this index; null when the optimizer does not have it.
  const Bytes* of(std::size_t index) const;
  bool operator==(const OptimizerTerms&) const = default;

 private:
  std::vector<Bytes> groups_;
  std::vector<std::optional<std::size_t>> group_of_;  // by parameter
};

// The optimizer of a program by value: its numbers, and its state, whose tensors it shares. It is
// right until the next step of the optimizer, which may end before.
class OptimizerCopy {
 public:
  OptimizerCopy(const torch::optim::Optimizer& optimizer,
                const std::vector<at::Tensor>& parameters);
  ~OptimizerCopy();
  OptimizerCopy(OptimizerCopy&&) noexcept;
  OptimizerCopy& operator=(OptimizerCopy&&) noexcept;

  // Of the parameter with this index, `used` as in state_of(); none: the optimizer does not have
  // it. Throws KVStoreError as options_of() does.
  std::optional<KeyState> state(std::size_t index, bool used) const;

 private:
  OptimizerTerms terms_;
  std::exception_ptr unknown_;
  std::vector<at::Tensor> parameters_;
  std::vector<std::unique_ptr<torch::optim::OptimizerParamState>> states_;  // by parameter; null
};

}  // namespace dpwa::kvstore
