#pragma once

#include <vector>

#include "interpolation/registry.h"

namespace dpwa {

// The policies of the project, which interpolation_registry() holds from the start:
//
// constant: f = value. Parameter: value in [0, 1].
//
// clock: f = peer_clock / (clock + peer_clock), so the node that has trained less moves more.
//
// loss: f = loss / (loss + peer_loss), so the node with the larger loss moves more. Only for shards
// of one distribution: otherwise the losses cannot be compared (docs/INTERPOLATION.md).
//
// linear: f = start + clock * (end - start) / target, and f = end once clock > target. Parameters:
// start and end in [0, 1], target in steps, at least 1.
//
// loss_divergence: f = loss^2 / (loss^2 + peer_loss^2) * min(loss / target, 1), so the node with
// the larger loss moves much more, and no node moves far once its loss is below the target. The
// warning of `loss` holds twice. Parameter: target, a loss, at least 1e-12.
std::vector<InterpolationMethod> built_in_policies();

}  // namespace dpwa
