#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "dpwa/base/time.h"
#include "dpwa/rules/step_report.h"

namespace dpwa::train {

// The line on stderr that shows the progress of training: rewritten in place at most twice a second
// on a terminal, a new line at most every ten seconds elsewhere, nothing when quiet. Work that ends
// within that time, such as an evaluation of a small model, gets no line. One owner, one thread.
class ProgressLine {
 public:
  ProgressLine(std::string node, std::uint64_t steps, bool quiet, std::FILE* out = stderr);
  ~ProgressLine();  // leaves the terminal on a fresh line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void step(std::uint64_t step, double loss, const StepReport& report, TimePoint now);
  // Progress of work beside the steps: `done` of `total` samples so far, 0 at its beginning.
  void work(std::string_view what, std::size_t done, std::size_t total, TimePoint now);
  void accuracy(double fraction) { accuracy_ = fraction; }  // of the latest evaluation

 private:
  bool due(TimePoint since, TimePoint now) const;
  void show(const std::string& text, TimePoint now);

  std::string node_;
  std::uint64_t steps_;
  bool quiet_;
  std::FILE* out_;
  bool terminal_;
  bool line_open_ = false;
  double accuracy_ = -1;  // negative = none yet
  TimePoint shown_{};
  TimePoint work_begun_{};
};

}  // namespace dpwa::train
