#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "adapters/torch_types.h"
#include "dpwa/collective/signature.h"

namespace dpwa::collective {

// Parameters and buffers of FlatParameters, with their types, shapes and order in memory.
std::vector<Signature::Entry> tensors_of(const torch::nn::Module& model);

// Floating-point buffers: BatchNorm statistics and their like. Counters count the same steps on
// every rank.
std::vector<at::Tensor> shared_buffers(torch::nn::Module& module);

// Class, learning rates and hyper-parameters of an optimizer. If they differed, the models would
// drift apart.
Signature optimizer_words(const torch::optim::Optimizer& optimizer);
// The checksum of what an optimizer of LibTorch remembers of its parameters; the same text for all
// other optimizers.
std::string state_words(const torch::optim::Optimizer& optimizer);

}  // namespace dpwa::collective
