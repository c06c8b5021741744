#pragma once

#include "interpolation/registry.h"

namespace dpwa {

// loss: f = loss / (loss + peer_loss), so the node with the larger loss moves more. Only for shards
// of one distribution: otherwise the losses cannot be compared (docs/INTERPOLATION.md). No
// parameters.
InterpolationMethod loss_method();

}  // namespace dpwa
