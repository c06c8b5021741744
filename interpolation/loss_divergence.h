#pragma once

#include "interpolation/registry.h"

namespace dpwa {

// loss_divergence: f = loss^2 / (loss^2 + peer_loss^2) * min(loss / target, 1): the node with the
// larger loss moves much more, and nobody moves far once its loss is below the target. The warning
// of loss.h holds twice. Parameter: target, a loss, at least 1e-12.
InterpolationMethod loss_divergence_method();

}  // namespace dpwa
