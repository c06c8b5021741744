#pragma once

#include <cstddef>
#include <functional>

#include "adapters/torch_types.h"

namespace dpwa {

// Measures the running mean and variance of every BatchNorm1d, 2d and 3d in `module` again: they
// become the plain means, over the batches that `forward_passes` sends through the module, of each
// batch's mean and unbiased variance (what momentum = None computes). For a model whose weights
// were averaged: its activations are not the average of the models' activations.
//
// During the call these layers are in training mode, all others (dropout) in evaluation mode, and
// no gradients are recorded. Afterwards training modes, momentum and the counters of batches are
// restored, and the statistics still lie in the same memory. A layer that saw no batch keeps its
// statistics; when `forward_passes` throws, all layers do. Returns the number of layers measured.
// One (trainer) thread.
std::size_t reestimate_batch_norm(torch::nn::Module& module,
                                  const std::function<void()>& forward_passes);

// Whether there is such a layer, with running statistics.
bool has_batch_norm(const torch::nn::Module& module);
// Whether there is one, with or without them: it needs two samples to train.
bool normalises_batches(const torch::nn::Module& module);

}  // namespace dpwa
