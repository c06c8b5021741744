#pragma once

#include <cstddef>
#include <span>

#include "dpwa/collectives/group.h"

namespace dpwa::collectives {

// Combines `count` numbers of each input into `result`, in the order of the inputs, one pass over
// memory: the bits follow from the numbers and that order alone. f16 and bf16 are combined in float
// and rounded once. Integers wrap around. NaN: a minimum or maximum with one is one.
// `result` may be one of the inputs.
void reduce(NumberType type, Reduction reduction, std::span<const std::byte* const> inputs,
            std::byte* result, std::size_t count);

}  // namespace dpwa::collectives
