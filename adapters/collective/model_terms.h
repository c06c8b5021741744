#pragma once

#include <torch/nn/module.h>

#include <vector>

#include "adapters/collective/engine/signature.h"
#include "adapters/collective/terms.h"

namespace dpwa::collective {

// Parameters and buffers with their types and shapes.
std::vector<Signature::Entry> tensors_of(const torch::nn::Module& model);

// All of them as one number, for nodes that have not met yet: those that form a group compare each
// tensor.
Terms model_terms(const torch::nn::Module& model);

}  // namespace dpwa::collective
