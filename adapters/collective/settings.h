#pragma once

#include <torch/optim/optimizer.h>

#include "adapters/collective/engine/signature.h"
#include "adapters/collective/gradient_reducer.h"
#include "dpwa/config/config.h"

namespace dpwa::collective {

ReducerOptions reducer_options(const CollectiveConfig& config);

// Class, learning rates and hyper-parameters of an optimizer. If they differed, the models would
// drift apart.
Signature optimizer_words(const torch::optim::Optimizer& optimizer);

}  // namespace dpwa::collective
