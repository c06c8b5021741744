#pragma once

#include <ATen/core/Tensor.h>

#include "adapters/torch_types.h"
#include "dpwa/kvstore/optimizer.h"

namespace dpwa::kvstore {

// What an optimizer of torch remembers of a parameter, in the form of the servers, and back, bit
// for bit. `options`: those of the parameter's group (options_of()).

// No steps: nothing is remembered (null). Where torch does not count steps, one stands for all;
// `used`: for plain SGD, which remembers nothing, whether the parameter has been updated.
OptimizerState state_of(const torch::optim::OptimizerParamState* remembered_by_torch,
                        const at::Tensor& parameter, const OptimizerOptions& options, bool used);
// `state` fits the options and the parameter.
void give_state(torch::optim::Optimizer& optimizer, const at::Tensor& parameter,
                const OptimizerOptions& options, const OptimizerState& state);

}  // namespace dpwa::kvstore
