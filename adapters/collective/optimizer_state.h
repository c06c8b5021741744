#pragma once

#include <torch/optim/optimizer.h>

#include <string>

#include "adapters/collective/engine/process_group.h"

namespace dpwa::collective {

// The options and the state, such as moments, of the optimizer of rank `root`, on all members.
// `own`: the optimizer of this member, read only at the root; null there: the state is empty.
// Throws CollectiveError.
std::string broadcast_state(const torch::optim::Optimizer* own, const ProcessGroup& group,
                            int root);
// Loads the state into an optimizer of the same class over the same parameters; an empty state
// changes nothing.
void load_state(torch::optim::Optimizer& optimizer, const std::string& state);

}  // namespace dpwa::collective
