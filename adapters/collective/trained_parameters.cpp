#include "adapters/collective/trained_parameters.h"

#include <algorithm>

namespace dpwa::collective {

std::vector<std::pair<std::string, at::Tensor>> trained_parameters(torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> trained;
  for (const auto& item : module.named_parameters()) {
    const bool known = std::ranges::any_of(
        trained, [&](const auto& one) { return one.second.is_same(item.value()); });
    if (item.value().requires_grad() && !known) trained.emplace_back(item.key(), item.value());
  }
  return trained;
}

std::vector<at::Tensor> shared_buffers(torch::nn::Module& module) {
  std::vector<at::Tensor> shared;
  for (const auto& buffer : module.buffers()) {
    if (buffer.is_floating_point() && buffer.numel() > 0) shared.push_back(buffer);
  }
  return shared;
}

}  // namespace dpwa::collective
