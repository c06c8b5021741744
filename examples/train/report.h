#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/rules/step_report.h"
#include "examples/train/metrics_writer.h"
#include "examples/train/options.h"
#include "examples/train/run_state.h"

namespace dpwa::train {

// A step that was made.
struct MadeStep {
  std::uint64_t step = 0;
  double seconds = 0;  // of training so far
  double rate = 0;     // of learning
  double step_ms = 0;
  StepReport report;
  TimePoint end{};
};

// Called before the first batch of work on samples and after each one: `done` of `total` are
// finished.
using SampleProgress = std::function<void(std::size_t done, std::size_t total)>;

// Sums up the steps of this process for the result. One owner, one thread.
class StepStatistics {
 public:
  struct Summary {
    std::uint64_t pulls_ok = 0;
    std::uint64_t pulls_failed = 0;
    std::uint64_t bytes_received = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t steps = 0;  // that this process has made
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

struct Evaluation {
  double accuracy = 0;  // fraction of the test set
  double loss = 0;      // mean cross-entropy
};

struct AveragedModel {
  std::optional<Evaluation> evaluation;  // none when there was no time for it
  std::uint64_t participants = 1;        // 0: not known
  double distance = 0;                   // from this node's model to the average
};

// NODE.result.json, which goes to stdout without --run-dir.
struct RunResult {
  RunIdentity identity;
  RunPosition position;
  Backend backend = Backend::null;
  std::optional<Evaluation> own;  // before finish(); none when interrupted before it was done
  std::optional<AveragedModel> averaged;
  StepStatistics::Summary steps;
  double clock = 0;
  bool interrupted = false;
  bool preempted = false;         // by the notice that its machine will be taken away
  bool lost_final_model = false;  // FinishReport's
  bool saved = true;              // checkpoint and models, as asked for; not in the file
};

// One JSON object and a newline; numbers that are not finite, and absent values, are null.
std::string to_json(const RunResult& result);

// The result of a run that had ended before this process.
struct EarlierResult {
  std::string text;                // of the file; with the final model of `now` where it had none
  bool lacks_final_model = false;  // the servers did not give it, now neither
};

// Of the text of a result file, of `now` and of the steps of the run. None: this process has made
// steps, or the text is not the result of the same run at its end. Any text.
std::optional<EarlierResult> earlier_result(const std::string& text, const RunResult& now,
                                            std::uint64_t steps);

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

// Finds a run that learns nothing: its loss stays at or above that of guessing, the logarithm of
// the number of classes. Compares means over blocks of a quarter of the run, at least 50 steps and
// at most 250. The first block may be there. One owner.
class LossWatch {
 public:
  LossWatch(std::size_t classes, std::uint64_t steps, std::string where_to_look);

  // The loss of the next step. A line, once in a run, when a block stayed at chance.
  std::optional<std::string> see(double loss);

 private:
  const double chance_;
  const std::uint64_t block_;
  const std::string where_to_look_;
  std::uint64_t in_block_ = 0;
  std::uint64_t blocks_ = 0;
  double sum_ = 0;
  bool told_ = false;
};

// The outputs of a run: metrics and result files, stdout, stderr, a warning when it learns nothing.
// One owner, one thread.
class Report {
 public:
  // Creates the run directory and opens the metrics file; throws ConfigError when it cannot.
  // `resumed`: continues the metrics file of the last run. `steps`: of the whole run.
  Report(const TrainOptions& options, const std::string& node, bool resumed, std::uint64_t steps,
         LossWatch watch);

  // Nothing is left to train: an earlier process may have written the metrics of the whole run.
  void keep_old_lines();
  void step(const MadeStep& made, double loss);  // NaN: it had none
  // After so many seconds of training.
  void evaluation(double seconds, std::uint64_t step, const Evaluation& evaluation);
  // For the progress line, of work outside the steps.
  SampleProgress progress(std::string_view what);
  void flush();  // so that a run that is resumed from here leaves no gap in the metrics
  StepStatistics::Summary statistics() const { return statistics_.summary(); }

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
  LossWatch watch_;
  StepStatistics statistics_;
  std::optional<MetricsWriter> metrics_;  // none without a run directory
  std::optional<ProgressLine> progress_;  // until close()
};

}  // namespace dpwa::train
