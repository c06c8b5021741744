#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"

namespace dpwa {

// Fisher-Yates. std::shuffle gives other orders with other standard libraries.
template <typename Value>
void shuffle(std::vector<Value>& values, Random& random) {
  for (std::size_t left = values.size(); left > 1; --left)
    std::swap(values[left - 1], values[random.below(left)]);
}

}  // namespace dpwa
