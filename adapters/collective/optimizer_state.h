#pragma once

#include <torch/optim/optimizer.h>

#include <string>

#include "adapters/collective/engine/process_group.h"

namespace dpwa::collective {

// The options and the state, such as moments, of the optimizer of rank `root`, on all members.
// `own`: of this member, read at the root alone; null there: the state is empty. Throws
// CollectiveError.
std::string broadcast_state(const torch::optim::Optimizer* own, const ProcessGroup& group,
                            int root);
// Into an optimizer of the same class over the same parameters; an empty state changes nothing.
void load_state(torch::optim::Optimizer& optimizer, const std::string& state);

}  // namespace dpwa::collective
