#pragma once

#include "interpolation/registry.h"

namespace dpwa {

// linear: f = start + clock * (end - start) / target, and f = end once clock > target.
// Parameters: start and end in [0, 1], target in steps, at least 1.
InterpolationMethod linear_method();

}  // namespace dpwa
