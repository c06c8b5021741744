#pragma once

#include <cstddef>
#include <span>

#include "dpwa/collectives/group.h"

namespace dpwa::collectives {

// Combines `count` numbers of each input into `result`, in the order of the inputs, one pass over
// memory: the bits follow from the numbers and that order alone. float16 and bfloat16 are combined
// in float32 and rounded once; integers wrap around; booleans: sum and max are or, min is and.
// NaN: a minimum or maximum with one is one. `result` may be one of the inputs.
void reduce(DType type, Reduction reduction, std::span<const std::byte* const> inputs,
            std::byte* result, std::size_t count);

}  // namespace dpwa::collectives
