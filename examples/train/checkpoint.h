#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <string>

#include "examples/train/run_state.h"

namespace dpwa::train {

// A checkpoint's body: the run state as JSON, and a LibTorch archive of every parameter and buffer,
// the optimizer's state and the random generator of the model's device (checkpoint_store.h).
// Throws std::bad_alloc or c10::Error when memory is refused.
std::string pack_checkpoint(const RunState& state, const torch::nn::Module& model,
                            const torch::optim::Optimizer& optimizer);

// Restores what pack_checkpoint packed into a model and an optimizer of the same kind, on any
// device; parameters keep their identity and storage. Throws ConfigError when the checkpoint is of
// another run or does not fit; nothing is changed before the run is known to be the same.
RunState unpack_checkpoint(const std::string& body, const RunIdentity& here,
                           torch::nn::Module& model, torch::optim::Optimizer& optimizer);

}  // namespace dpwa::train
