#include "examples/train/result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dpwa/config/names.h"

namespace dpwa::train {
namespace {

using nlohmann::ordered_json;

ordered_json accuracy(const std::optional<Evaluation>& evaluation) {
  return evaluation ? ordered_json(evaluation->accuracy) : ordered_json(nullptr);
}

ordered_json loss(const std::optional<Evaluation>& evaluation) {
  return evaluation ? ordered_json(evaluation->loss) : ordered_json(nullptr);
}

ordered_json averaged(const std::optional<AveragedModel>& model) {
  if (!model) return nullptr;
  return {{"test_accuracy", accuracy(model->evaluation)},
          {"test_loss", loss(model->evaluation)},
          {"participants", model->participants},
          {"distance", model->distance}};
}

}  // namespace

void StepStatistics::add(const StepReport& report, double step_ms) {
  const double waited_ms = static_cast<double>(report.waited.count()) / 1e6;
  sums_.pulls_ok = report.pulls_ok;
  sums_.pulls_failed = report.pulls_failed;
  sums_.bytes_received += report.bytes;
  sums_.bytes_sent += report.sent;
  sums_.waited_ms_total += waited_ms;
  sums_.waited_ms_max = std::max(sums_.waited_ms_max, waited_ms);
  step_ms_.push_back(static_cast<float>(step_ms));
}

StepStatistics::Summary StepStatistics::summary() const {
  Summary summary = sums_;
  summary.steps = step_ms_.size();
  if (step_ms_.empty()) return summary;
  auto sorted = step_ms_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  summary.step_ms_median = *middle;
  summary.step_ms_max = *std::max_element(sorted.begin(), sorted.end());
  return summary;
}

std::string to_json(const RunResult& r) {
  // nlohmann writes NaN and infinities as null.
  const ordered_json json = {{"schema", 1},
                             {"node", r.identity.node},
                             {"dataset", r.identity.data},
                             {"split", r.identity.split},
                             {"model", r.identity.model},
                             {"optimizer", r.identity.optimizer},
                             {"lr", r.identity.lr},
                             {"schedule", r.identity.schedule},
                             {"batch_size", r.identity.batch_size},
                             {"seed", r.identity.seed},
                             {"backend", config::name_of(r.backend)},
                             {"interrupted", r.interrupted},
                             {"lost_final_model", r.lost_final_model},
                             {"test_accuracy", accuracy(r.own)},
                             {"test_loss", loss(r.own)},
                             {"steps", r.position.step},
                             {"steps_made", r.steps.steps},
                             {"samples", r.position.samples},
                             {"train_seconds", r.position.train_seconds},
                             {"clock", r.clock},
                             {"pulls_ok", r.steps.pulls_ok},
                             {"pulls_failed", r.steps.pulls_failed},
                             {"waited_ms_total", r.steps.waited_ms_total},
                             {"waited_ms_max", r.steps.waited_ms_max},
                             {"step_ms_median", r.steps.step_ms_median},
                             {"step_ms_max", r.steps.step_ms_max},
                             {"bytes_received", r.steps.bytes_received},
                             {"bytes_sent", r.steps.bytes_sent},
                             {"averaged_model", averaged(r.averaged)}};
  return json.dump(2) + "\n";
}

bool is_kept(const std::string& earlier, const RunResult& now, std::uint64_t steps) {
  if (now.steps.steps != 0 || now.interrupted) return false;
  const auto old = ordered_json::parse(earlier, nullptr, /*allow_exceptions=*/false);
  const auto fresh = ordered_json::parse(to_json(now));
  if (!old.is_object()) return false;
  for (const char* key :
       {"node", "dataset", "split", "model", "optimizer", "lr", "batch_size", "seed", "backend"}) {
    if (old.value(key, ordered_json()) != fresh[key]) return false;
  }
  const ordered_json old_steps = old.value("steps", ordered_json());
  if (!old_steps.is_number_unsigned()) return false;
  const auto ended_at = old_steps.get<std::uint64_t>();
  // A worker that comes to servers begins with the step after the last one.
  if (ended_at != now.position.step && ended_at < steps) return false;
  const auto is_true = [&old](const char* key) {
    return old.value(key, ordered_json(false)) == ordered_json(true);
  };
  if (is_true("interrupted") || is_true("lost_final_model")) return false;
  const bool has_average = old.value("averaged_model", ordered_json()).is_object();
  return has_average || !now.averaged;
}

}  // namespace dpwa::train
