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
          {"participants",
           model->participants > 0 ? ordered_json(model->participants) : ordered_json(nullptr)},
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

std::optional<EarlierResult> earlier_result(const std::string& text, const RunResult& now,
                                            std::uint64_t steps) {
  if (now.steps.steps != 0 || now.interrupted) return std::nullopt;
  auto json = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto fresh = ordered_json::parse(to_json(now));
  if (!json.is_object()) return std::nullopt;
  for (const char* key :
       {"node", "dataset", "split", "model", "optimizer", "lr", "batch_size", "seed", "backend"}) {
    if (json.value(key, ordered_json()) != fresh[key]) return std::nullopt;
  }
  const ordered_json ended_at = json.value("steps", ordered_json());
  if (!ended_at.is_number_unsigned()) return std::nullopt;
  // The run may have been longer than this process was told.
  if (ended_at != now.position.step && ended_at.get<std::uint64_t>() < steps) return std::nullopt;
  const auto is_true = [&json](const char* key) {
    return json.value(key, ordered_json(false)) == ordered_json(true);
  };
  if (is_true("interrupted")) return std::nullopt;
  const bool lost = is_true("lost_final_model");
  const bool has_average = json.value("averaged_model", ordered_json()).is_object();
  if (has_average || !now.averaged) return EarlierResult{text, lost};
  json["averaged_model"] = fresh["averaged_model"];
  json["lost_final_model"] = false;
  return EarlierResult{json.dump(2) + "\n", false};
}

}  // namespace dpwa::train
