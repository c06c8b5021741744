#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "dpwa/base/time.h"
#include "dpwa/rules/step_report.h"
#include "examples/train/metrics_writer.h"
#include "examples/train/options.h"
#include "examples/train/result.h"

namespace dpwa::train {

// A line of fields with two blanks between them, with as many of the first ones as `columns` have
// room for; the first field stays. It would else go on in the next row of a terminal, in mid-word.
std::string fit_line(const std::string& line, std::size_t columns);

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

// The outputs of a run: metrics and result files, stdout, stderr. One owner, one thread.
class Report {
 public:
  // Creates the run directory and opens the metrics file; throws ConfigError when it cannot.
  // `resumed`: continues the metrics file of the last run. `steps`: of the whole run.
  Report(const TrainOptions& options, const std::string& node, bool resumed, std::uint64_t steps);

  MetricsWriter* metrics() { return metrics_.get(); }  // null without a run directory
  ProgressLine* progress() { return progress_.get(); }
  std::uint64_t steps() const { return steps_; }  // of the whole run

  // The evaluation at the end of training, as a line of the metrics.
  void own_model(const RunResult& result);
  // The result file, whole or not at all; throws std::system_error. Of a run that had ended before,
  // the file of the process that trained stays, and gets the final model if it had none.
  void write(const RunResult& result);
  // Of a run that had ended before: the file says that the final model was lost.
  bool lacks_final_model(const RunResult& result) const;
  // The closing line, which ends with `models` (ModelFiles::words()), and the result on stdout when
  // there is no run directory. False when lines of the metrics were lost.
  [[nodiscard]] bool close(const RunResult& result, const std::string& models);

 private:
  std::filesystem::path result_file_;
  std::string earlier_;  // what the result file held at the start
  std::uint64_t steps_;
  bool quiet_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<ProgressLine> progress_;
};

}  // namespace dpwa::train
