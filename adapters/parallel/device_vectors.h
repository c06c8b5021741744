#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace dpwa {

// Vectors of one length and dtype, one for each device of a process, from two on: by NCCL between
// GPUs, each of which has one, else by a copy for each of the others.

// Copies the first into the others.
void broadcast(std::vector<at::Tensor>& vectors);

// Weights each, and adds all to the first; what the others hold afterwards is undefined.
void add_weighted(std::vector<at::Tensor>& vectors, const std::vector<double>& weights);

}  // namespace dpwa
