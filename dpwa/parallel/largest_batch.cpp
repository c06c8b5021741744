#include "dpwa/parallel/largest_batch.h"

#include <algorithm>
#include <cmath>

namespace dpwa {

std::uint64_t with_margin(std::uint64_t largest_that_fits) {
  if (largest_that_fits == 0) return 0;
  return std::max<std::uint64_t>(1, largest_that_fits - (largest_that_fits + 9) / 10);
}

std::uint64_t largest_that_fits(std::uint64_t limit,
                                const std::function<bool(std::uint64_t)>& fits) {
  std::uint64_t good = 0;
  std::uint64_t next = 1;
  while (next <= limit && fits(next)) {
    good = next;
    if (good == limit) return good;
    next = good > limit / 2 ? limit : 2 * good;
  }
  std::uint64_t bad = next;
  while (good + 1 < bad) {
    const std::uint64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

std::uint64_t MemoryLine::largest_within(double budget, std::uint64_t limit) const {
  if (fixed + per_sample > budget) return 0;
  if (per_sample <= 0) return limit;
  const double batch = std::floor((budget - fixed) / per_sample);
  return batch >= static_cast<double>(limit) ? limit : static_cast<std::uint64_t>(batch);
}

MemoryLine fit_memory(const std::vector<MemoryPoint>& points) {
  double mean_batch = 0, mean_bytes = 0;
  for (const MemoryPoint& point : points) {
    mean_batch += static_cast<double>(point.batch) / static_cast<double>(points.size());
    mean_bytes += point.bytes / static_cast<double>(points.size());
  }
  double spread = 0, both = 0;
  for (const MemoryPoint& point : points) {
    const double offset = static_cast<double>(point.batch) - mean_batch;
    spread += offset * offset;
    both += offset * (point.bytes - mean_bytes);
  }
  const double slope = spread > 0 ? std::max(0.0, both / spread) : 0;
  return {mean_bytes - slope * mean_batch, slope};
}

FittedBatch largest_within_budget(double budget, std::uint64_t limit, double growth,
                                  const std::function<double(std::uint64_t)>& measure) {
  FittedBatch result;
  for (std::uint64_t batch = 1; batch <= limit; batch *= 2) {
    if (result.line.largest_within(budget, limit) < batch && batch > 1) break;
    result.points.push_back({batch, measure(batch)});
    result.line = fit_memory(result.points);
    if (batch >= 4 && result.points.back().bytes - result.points.front().bytes >= growth) break;
    if (batch > limit / 2) break;
  }
  if (result.points.empty() || result.points.front().bytes > budget) return result;
  result.largest = std::max<std::uint64_t>(1, result.line.largest_within(budget, limit));
  return result;
}

}  // namespace dpwa
