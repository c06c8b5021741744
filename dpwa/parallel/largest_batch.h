#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace dpwa {

// The largest size that fits, less a margin for fragmented memory: 9/10 of it, rounded down, at
// least 1 where 1 fits.
std::uint64_t with_margin(std::uint64_t largest_that_fits);

// The largest batch for which `fits` is true, 0 when 1 does not fit. Doubles until a size does not
// fit, then bisects. `fits` runs one whole step of that size; it must be true for all sizes below
// one for which it is true. Tries no size above `limit`, and none twice.
std::uint64_t largest_that_fits(std::uint64_t limit,
                                const std::function<bool(std::uint64_t)>& fits);

// The peak of memory during a step with so many samples, in bytes.
struct MemoryPoint {
  std::uint64_t batch = 0;
  double bytes = 0;
};

// bytes = fixed + per_sample x batch, by least squares.
struct MemoryLine {
  double fixed = 0;
  double per_sample = 0;

  // The largest batch of at most `limit` that stays within `budget` bytes; 0 when none does.
  std::uint64_t largest_within(double budget, std::uint64_t limit) const;
};

// Through at least one point; a single size, or memory that does not grow, is per_sample 0.
MemoryLine fit_memory(const std::vector<MemoryPoint>& points);

// The largest batch within `budget` bytes, for memory in which a step that needs too much cannot be
// tried, such as host memory. Measures steps of 1, 2, 4, … samples until memory has grown by
// `growth` bytes above that of one sample, until the line through the points puts the next size
// above the budget, or until the next size exceeds `limit`. The line then gives the result.
// `measure` runs a whole step and returns its peak.
struct FittedBatch {
  std::uint64_t largest = 0;  // without margin; 0: one sample is too much
  MemoryLine line;
  std::vector<MemoryPoint> points;
};
FittedBatch largest_within_budget(double budget, std::uint64_t limit, double growth,
                                  const std::function<double(std::uint64_t)>& measure);

}  // namespace dpwa
