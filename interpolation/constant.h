#pragma once

#include "interpolation/registry.h"

namespace dpwa {

// constant: f = value. Parameter: value in [0, 1].
InterpolationMethod constant_method();

}  // namespace dpwa
