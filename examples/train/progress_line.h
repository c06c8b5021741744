#pragma once

#include <cstdint>
#include <string>

#include "dpwa/core/time.h"
#include "dpwa/gossip/step_report.h"

namespace dpwa::train {

// The line on stderr that tells how training goes: rewritten in place at most twice a second on a
// terminal, a new line every two seconds elsewhere, nothing when quiet. One owner, one thread.
class ProgressLine {
 public:
  ProgressLine(std::string node, std::uint64_t steps, bool quiet);
  ~ProgressLine();  // leaves the terminal on a fresh line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void step(std::uint64_t step, double loss, const StepReport& report, TimePoint now);
  void accuracy(double fraction) { accuracy_ = fraction; }  // of the latest evaluation

 private:
  std::string node_;
  std::uint64_t steps_;
  bool quiet_;
  bool terminal_;
  bool line_open_ = false;
  double accuracy_ = -1;  // negative = none yet
  TimePoint shown_{};
};

}  // namespace dpwa::train
