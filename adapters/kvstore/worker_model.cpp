#include "adapters/kvstore/worker_model.h"

#include <unordered_set>

#include "adapters/common/module_tensors.h"

namespace dpwa::kvstore {

WorkerModel::WorkerModel(torch::nn::Module& model) : buffers(model) {
  std::unordered_set<const void*> seen;
  for (const auto& [name, parameter] : parameters_of(model)) {
    if (!parameter.defined() || !seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
    if (parameter.requires_grad()) {
      trained.push_back(parameters.size());
      trained_parameters.push_back(parameter);
    }
    parameters.emplace_back(name, parameter);
    outs.push_back(parameter);
  }
  used.resize(trained.size());
}

}  // namespace dpwa::kvstore
