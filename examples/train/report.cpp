#include "examples/train/report.h"

#include <cstdio>
#include <system_error>

#include "examples/train/errors.h"
#include "examples/train/files.h"

namespace dpwa::train {

Report::Report(const TrainOptions& options, const std::string& node, bool resumed,
               std::uint64_t steps)
    : quiet_(options.quiet), progress_(std::make_unique<ProgressLine>(node, steps, options.quiet)) {
  if (options.run_dir.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.run_dir, error);
  if (error) throw UsageError("--run-dir: " + options.run_dir.string() + ": " + error.message());
  result_file_ = options.run_dir / (node + ".result.json");
  metrics_ = std::make_unique<MetricsWriter>(options.run_dir / (node + ".metrics.jsonl"), resumed);
}

void Report::own_model(const RunResult& result) {
  if (metrics_ && result.own)
    metrics_->evaluation(result.position.train_seconds, result.position.step, result.own->accuracy,
                         result.own->loss);
}

void Report::write(const RunResult& result) const {
  if (!result_file_.empty()) write_file_atomically(result_file_, {to_json(result)});
}

bool Report::close(const RunResult& result) {
  const bool complete = !metrics_ || metrics_->close();
  progress_.reset();
  if (result_file_.empty()) std::fputs(to_json(result).c_str(), stdout);
  if (quiet_) return complete;
  std::string text = result.identity.node + ": " +
                     (result.interrupted ? "stopped at" : "finished") + " step " +
                     std::to_string(result.position.step) + ", " +
                     std::to_string(result.position.samples) + " samples";
  const auto add = [&text](const char* what, const Evaluation& evaluation) {
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.2f %%", 100 * evaluation.accuracy);
    text += std::string(what) + percent;
  };
  if (result.own) add("; test accuracy ", *result.own);
  if (result.averaged && result.averaged->evaluation)
    add("; averaged model ", *result.averaged->evaluation);
  std::fprintf(stderr, "%s\n", text.c_str());
  return complete;
}

}  // namespace dpwa::train
