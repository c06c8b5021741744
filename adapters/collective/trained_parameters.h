#pragma once

#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

namespace dpwa::collective {

// The parameters whose gradients travel, with their names: not the frozen ones, and one that is
// registered twice (tied weights) under its first name.
std::vector<std::pair<std::string, at::Tensor>> trained_parameters(torch::nn::Module& module);

// Floating-point buffers: BatchNorm statistics and their like. Counters count the same steps on
// every rank.
std::vector<at::Tensor> shared_buffers(torch::nn::Module& module);

}  // namespace dpwa::collective
