#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "adapters/kvstore/shared_buffers.h"
#include "adapters/torch_types.h"

namespace dpwa::kvstore {

// The tensors of a model as a worker of the store has them, each once.
struct WorkerModel {
  explicit WorkerModel(torch::nn::Module& model);

  std::vector<std::pair<std::string, at::Tensor>> parameters;  // in the order of the forward pass
  std::vector<std::size_t> trained;                            // of `parameters`
  std::vector<at::Tensor> trained_parameters;
  std::vector<bool> used;  // of `trained`: it has had a gradient
  SharedBuffers buffers;
  // What the values of the store are written to: parameters, then, once they have keys, buffers.
  std::vector<at::Tensor> outs;
};

}  // namespace dpwa::kvstore
