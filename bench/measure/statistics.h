#pragma once

#include <vector>

namespace dpwa::bench {

struct Range {
  double min = 0;
  double median = 0;
  double max = 0;
};

// The value below which a share `q` of the values lies: the nearest rank. 0 when there are none.
double quantile(std::vector<double> values, double q);
Range range_of(const std::vector<double>& values);
// (max - min) / median; 0 when the median is.
double spread_of(const Range& range);

}  // namespace dpwa::bench
