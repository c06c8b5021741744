#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "examples/train/metrics_writer.h"
#include "examples/train/options.h"
#include "examples/train/progress_line.h"
#include "examples/train/result.h"

namespace dpwa::train {

// The outputs of a run: metrics and result files, stdout, stderr. One owner, one thread.
class Report {
 public:
  // Creates the run directory and opens the metrics file; throws UsageError when it cannot.
  // `resumed`: continues the metrics file of the last run.
  Report(const TrainOptions& options, const std::string& node, bool resumed, std::uint64_t steps);

  MetricsWriter* metrics() { return metrics_.get(); }  // null without a run directory
  ProgressLine* progress() { return progress_.get(); }

  // The evaluation at the end of training, as a line of the metrics.
  void own_model(const RunResult& result);
  // The result file, whole or not at all; throws std::system_error.
  void write(const RunResult& result) const;
  // The closing line, and the result on stdout when there is no run directory. False when lines of
  // the metrics were lost.
  [[nodiscard]] bool close(const RunResult& result);

 private:
  std::filesystem::path result_file_;
  bool quiet_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<ProgressLine> progress_;
};

}  // namespace dpwa::train
