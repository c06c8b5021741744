#include "adapters/collective/model_terms.h"

#include "adapters/common/module_tensors.h"

namespace dpwa::collective {

std::vector<at::Tensor> shared_buffers(torch::nn::Module& module) {
  std::vector<at::Tensor> shared;
  for (const auto& [name, buffer] : buffers_of(module)) {
    if (buffer.is_floating_point() && buffer.numel() > 0) shared.push_back(buffer);
  }
  return shared;
}

}  // namespace dpwa::collective
