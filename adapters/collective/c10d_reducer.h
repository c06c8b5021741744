#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "adapters/collective/gradient_reducer.h"

namespace dpwa::collective {

// c10d's Reducer, configured for GradientReducer: every full bucket goes to `hook`, and nothing is
// copied back into the gradients. Passes on exceptions of c10d.
std::unique_ptr<c10d::Reducer> make_c10d_reducer(const std::vector<at::Tensor>& parameters,
                                                 const std::vector<std::string>& names,
                                                 const ProcessGroup& group,
                                                 const ReducerOptions& options,
                                                 std::unique_ptr<c10d::CommHookInterface> hook);

}  // namespace dpwa::collective
