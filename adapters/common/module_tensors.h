#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "adapters/torch_types.h"

namespace dpwa {

// The tensors that a module and its parts have registered, with their names, in the order of
// registration, for sources that do without the headers of modules. Undefined tensors are left out.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
NamedTensors parameters_of(const torch::nn::Module& module);
NamedTensors buffers_of(const torch::nn::Module& module);
// Each once: one that is registered twice (tied weights) under its first name.
NamedTensors each_once(NamedTensors tensors);
// Those whose gradients count, each once: not the frozen ones.
NamedTensors trained_parameters(const torch::nn::Module& module);

}  // namespace dpwa
