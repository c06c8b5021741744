#pragma once

#include "dpwa/config/config.h"
#include "interpolation/guarded.h"

namespace dpwa {

// The policy that the cluster file chooses, behind every guard.
GuardedInterpolation make_interpolation(const InterpolationConfig& config);

}  // namespace dpwa
