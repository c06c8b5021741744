#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "interpolation/kernels/dtype.h"

namespace dpwa {

// Element types of torch and of snapshots. None: a type that cannot be shared (complex, quantised).
std::optional<DType> to_dtype(at::ScalarType type);
at::ScalarType to_scalar_type(DType dtype);

}  // namespace dpwa
