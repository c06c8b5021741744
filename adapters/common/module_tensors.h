#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "dpwa/snapshot/manifest.h"

namespace dpwa {

struct ModuleTensor {
  std::string name;
  at::Tensor tensor;
  bool is_parameter = false;
};

// The parameters and buffers of a module, one (sub)module after the other in the order of
// registration: first its parameters, then its buffers, so that the statistics of a BatchNorm lie
// with its weights. A tensor registered twice (tied weights) is listed once, under its first name;
// undefined ones are left out.
std::vector<ModuleTensor> tensors_of(const torch::nn::Module& module);

// What a manifest says of each. Throws std::invalid_argument that names the tensor: none at all;
// sparse, complex, quantised or without memory; not on one device; or two over the same memory.
std::vector<TensorSpec> describe(const std::vector<ModuleTensor>& tensors);

}  // namespace dpwa
