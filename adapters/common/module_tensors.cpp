#include "adapters/common/module_tensors.h"

#include <torch/nn/module.h>

#include <unordered_set>

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

NamedTensors each_once(NamedTensors tensors) {
  std::unordered_set<const void*> seen;
  std::erase_if(tensors, [&](const auto& named) {
    return !seen.insert(named.second.unsafeGetTensorImpl()).second;
  });
  return tensors;
}

NamedTensors trained_parameters(const torch::nn::Module& module) {
  NamedTensors trained = each_once(parameters_of(module));
  std::erase_if(trained, [](const auto& named) { return !named.second.requires_grad(); });
  return trained;
}

}  // namespace dpwa
