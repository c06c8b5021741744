#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "dpwa/kvstore/messages.h"

namespace torch::optim {
class Optimizer;
}

namespace dpwa::kvstore {

// The optimizer of a program as the servers get it with every push: name and numbers of the group
// that each parameter is in.
class OptimizerTerms {
 public:
  OptimizerTerms() = default;
  // Throws KVStoreError as options_of() does.
  OptimizerTerms(const torch::optim::Optimizer& optimizer,
                 const std::vector<at::Tensor>& parameters);

  // Of the parameter with this index; null: the optimizer does not have it.
  const Bytes* of(std::size_t index) const;
  bool operator==(const OptimizerTerms&) const = default;

 private:
  std::vector<Bytes> groups_;
  std::vector<std::optional<std::size_t>> group_of_;  // by parameter
};

}  // namespace dpwa::kvstore
