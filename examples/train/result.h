#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/rules/step_report.h"
#include "examples/train/run_state.h"

namespace dpwa::train {

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

}  // namespace dpwa::train
