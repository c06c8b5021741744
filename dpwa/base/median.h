#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "dpwa/base/invariant.h"

namespace dpwa {

// The median; of an even number of values the lower of the two in the middle. Reorders `values`,
// which must not be empty.
inline double lower_median(std::span<double> values) {
  DPWA_INVARIANT(!values.empty(), "a median is of some values");
  const auto median = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), median, values.end());
  return *median;
}

}  // namespace dpwa
