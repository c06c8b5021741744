#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "dpwa/rules/step_report.h"

namespace dpwa::train {

// Sums up the steps of this process for the result. One owner, one thread.
class StepStatistics {
 public:
  struct Summary {
    std::uint64_t pulls_ok = 0;
    std::uint64_t pulls_failed = 0;
    std::uint64_t bytes_received = 0;
    double waited_ms_total = 0;
    double waited_ms_max = 0;
    double step_ms_median = std::numeric_limits<double>::quiet_NaN();  // NaN without steps
    double step_ms_max = std::numeric_limits<double>::quiet_NaN();
  };

  void add(const StepReport& report, double step_ms);
  Summary summary() const;

 private:
  Summary sums_;
  std::vector<float> step_ms_;
};

}  // namespace dpwa::train
