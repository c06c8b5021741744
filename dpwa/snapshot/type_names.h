#pragma once

#include <string>

#include "dpwa/snapshot/manifest.h"

namespace dpwa {

// By the names that programs in other languages use: float32, interpolate. Throw
// std::invalid_argument.
DType dtype_named(const std::string& name);
BlendRule rule_named(const std::string& name);

}  // namespace dpwa
