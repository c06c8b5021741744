#include "examples/train/step_statistics.h"

#include <algorithm>

namespace dpwa::train {

void StepStatistics::add(const StepReport& report, double step_ms) {
  const double waited_ms = static_cast<double>(report.waited.count()) / 1e6;
  sums_.pulls_ok = report.pulls_ok;
  sums_.pulls_failed = report.pulls_failed;
  sums_.bytes_received += report.bytes;
  sums_.waited_ms_total += waited_ms;
  sums_.waited_ms_max = std::max(sums_.waited_ms_max, waited_ms);
  step_ms_.push_back(static_cast<float>(step_ms));
}

StepStatistics::Summary StepStatistics::summary() const {
  Summary summary = sums_;
  if (step_ms_.empty()) return summary;
  auto sorted = step_ms_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  summary.step_ms_median = *middle;
  summary.step_ms_max = *std::max_element(sorted.begin(), sorted.end());
  return summary;
}

}  // namespace dpwa::train
