#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "adapters/torch_types.h"

namespace dpwa::collective {

// Floating-point buffers: BatchNorm statistics and their like. Counters count the same steps on
// every rank.
std::vector<at::Tensor> shared_buffers(torch::nn::Module& module);

}  // namespace dpwa::collective
