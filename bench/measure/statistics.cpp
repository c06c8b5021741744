#include "bench/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace dpwa::bench {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::min(index, values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Range range_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {*min, quantile(values, 0.5), *max};
}

double spread_of(const Range& range) {
  return range.median == 0 ? 0 : (range.max - range.min) / range.median;
}

}  // namespace dpwa::bench
