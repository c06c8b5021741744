#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace dpwa {

// Of two in the middle the lower: of two distances, the nearer one. Reorders `values`, of which
// there is at least one.
inline double lower_median(std::span<double> values) {
  const auto median = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), median, values.end());
  return *median;
}

}  // namespace dpwa
