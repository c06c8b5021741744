#include "adapters/common/module_tensors.h"

#include <torch/nn/module.h>

namespace dpwa {

NamedTensors parameters_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

NamedTensors buffers_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

}  // namespace dpwa
