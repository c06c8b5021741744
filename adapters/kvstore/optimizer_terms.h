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

}  // namespace dpwa::kvstore
