#include "examples/train/report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "dpwa/config/names.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "examples/train/files.h"
#include "examples/train/plan.h"

namespace dpwa::train {
namespace {

using nlohmann::ordered_json;

ordered_json number(const std::optional<Evaluation>& evaluation, double Evaluation::*field) {
  return evaluation ? ordered_json(*evaluation.*field) : ordered_json(nullptr);
}

ordered_json averaged(const std::optional<AveragedModel>& model) {
  if (!model) return nullptr;
  return {{"test_accuracy", number(model->evaluation, &Evaluation::accuracy)},
          {"test_loss", number(model->evaluation, &Evaluation::loss)},
          {"participants",
           model->participants > 0 ? ordered_json(model->participants) : ordered_json(nullptr)},
          {"distance", model->distance}};
}

constexpr std::chrono::milliseconds terminal_interval(500);
constexpr std::chrono::milliseconds file_interval(10000);

std::string words_for(const StepReport& report) {
  const std::string outcome(to_string(report.outcome));
  const bool of_servers = report.sent > 0;
  const double waited_ms = static_cast<double>(report.waited.count()) / 1e6;
  const std::string end = of_servers ? rounded(waited_ms, "  waited %.1f ms") : "";
  if (report.outcome == Outcome::averaged)
    return outcome + " over " + std::to_string(report.participants) +
           (of_servers ? " workers" : " nodes") + end;
  if (report.outcome == Outcome::updated) return outcome + " by the servers" + end;
  if (report.outcome == Outcome::dropped) return outcome + ": its gradients did not count" + end;
  if (report.outcome == Outcome::rejected && of_servers)
    return outcome + ": its gradients are not finite" + end;
  if (report.outcome == Outcome::skipped && of_servers) return "alone, no other worker" + end;
  return "pulls " + std::to_string(report.pulls_ok) + " ok " + std::to_string(report.pulls_failed) +
         " failed  " + outcome + " " + report.peer;
}

// As the terminal is now. The last column stays free: some terminals go on in the next row there.
std::size_t columns_of(std::FILE* terminal) {
  winsize size{};
  const bool known = ::ioctl(::fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1U : 79;
}

constexpr double of_chance = 0.97;  // a mean loss above this share of it has learnt nothing yet

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
                             {"preempted", r.preempted},
                             {"lost_final_model", r.lost_final_model},
                             {"test_accuracy", number(r.own, &Evaluation::accuracy)},
                             {"test_loss", number(r.own, &Evaluation::loss)},
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
  if (now.steps.steps != 0) return std::nullopt;
  auto json = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto fresh = ordered_json::parse(to_json(now));
  if (!json.is_object()) return std::nullopt;
  for (const char* key :
       {"node", "dataset", "split", "model", "optimizer", "lr", "batch_size", "seed", "backend"}) {
    if (json.value(key, ordered_json()) != fresh[key]) return std::nullopt;
  }
  const ordered_json ended_at = json.value("steps", ordered_json());
  if (!ended_at.is_number_unsigned()) return std::nullopt;
  // The run may have been longer than this process was told. One that was stopped may have been
  // told of a longer one, and have made no step of it yet.
  const bool same_end = ended_at == now.position.step && !now.interrupted;
  if (!same_end && ended_at.get<std::uint64_t>() < steps) return std::nullopt;
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

Report::Report(const TrainOptions& options, const std::string& node, bool resumed,
               std::uint64_t steps, LossWatch watch)
    : steps_(steps), quiet_(options.quiet), watch_(std::move(watch)) {
  progress_.emplace(node, steps, options.quiet);
  if (options.run_dir.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.run_dir, error);
  if (error) throw ConfigError("--run-dir: " + options.run_dir.string() + ": " + error.message());
  result_file_ = options.run_dir / (node + ".result.json");
  if (std::filesystem::is_regular_file(result_file_, error)) {
    std::ostringstream text;
    text << std::ifstream(result_file_).rdbuf();
    earlier_ = text.str();
  }
  metrics_.emplace(options.run_dir / (node + ".metrics.jsonl"), resumed);
  write_events_to(options.run_dir / (node + ".events.jsonl"));
}

void Report::keep_old_lines() {
  if (metrics_) metrics_->keep_old_lines();
}

void Report::step(const MadeStep& made, double loss) {
  statistics_.add(made.report, made.step_ms);
  if (metrics_)
    metrics_->step(made.seconds, made.step, loss, made.rate, made.step_ms, made.report, made.end);
  progress_->step(made.step, loss, made.report, made.end);
  if (!std::isfinite(loss)) return;
  if (const auto line = watch_.see(loss)) log(LogLevel::warn, "train", *line);
}

void Report::evaluation(double seconds, std::uint64_t step, const Evaluation& evaluation) {
  if (metrics_) metrics_->evaluation(seconds, step, evaluation.accuracy, evaluation.loss);
  progress_->accuracy(evaluation.accuracy);
}

SampleProgress Report::progress(std::string_view what) {
  return [this, what](std::size_t done, std::size_t total) {
    progress_->work(what, done, total, std::chrono::steady_clock::now());
  };
}

void Report::flush() {
  if (metrics_) metrics_->flush();
}

void Report::write(const RunResult& result) {
  if (result_file_.empty()) return;
  const auto earlier = earlier_result(earlier_, result, steps_);
  if (earlier && earlier->text == earlier_) return;
  write_file_atomically(result_file_, {earlier ? earlier->text : to_json(result)});
}

bool Report::lacks_final_model(const RunResult& result) const {
  const auto earlier = earlier_result(earlier_, result, steps_);
  return earlier && earlier->lacks_final_model;
}

bool Report::close(const RunResult& result, const std::string& models) {
  const bool complete = !metrics_ || metrics_->close();
  progress_.reset();
  if (result_file_.empty()) std::fputs(to_json(result).c_str(), stdout);
  if (quiet_) return complete;
  const std::string at = " step " + std::to_string(result.position.step) + ", ";
  std::string text = result.identity.node + ": ";
  if (result.interrupted || result.steps.steps != 0) {
    text += (result.interrupted ? "stopped at" : "finished") + at +
            std::to_string(result.position.samples) + " samples";
  } else {
    text += "nothing was left to train at" + at;
    const auto earlier = earlier_result(earlier_, result, steps_);
    text += !earlier
                ? std::to_string(result.position.samples) + " samples"
                : "and " + result_file_.string() +
                      (earlier->text == earlier_ ? " stays as it is" : " gets the final model");
  }
  if (result.own) text += rounded(100 * result.own->accuracy, "; test accuracy %.2f %%");
  if (result.averaged && result.averaged->evaluation)
    text += rounded(100 * result.averaged->evaluation->accuracy, "; averaged model %.2f %%");
  if (result.lost_final_model) text += "; without the final model of all nodes";
  if (!models.empty()) text += "; " + models;
  std::fprintf(stderr, "%s\n", text.c_str());
  return complete;
}

std::string fit_line(const std::string& line, std::size_t columns) {
  if (line.size() <= columns) return line;
  const auto end = line.rfind("  ", columns);
  return line.substr(0, end == std::string::npos || end == 0 ? line.find("  ") : end);
}

ProgressLine::ProgressLine(std::string node, std::uint64_t steps, bool quiet, std::FILE* out)
    : node_(std::move(node)),
      steps_(steps),
      quiet_(quiet),
      out_(out),
      terminal_(::isatty(::fileno(out)) != 0) {}

ProgressLine::~ProgressLine() {
  if (line_open_) std::fputc('\n', out_);
}

bool ProgressLine::due(TimePoint since, TimePoint now) const {
  return !quiet_ && now - since >= (terminal_ ? terminal_interval : file_interval);
}

void ProgressLine::show(const std::string& text, TimePoint now) {
  shown_ = now;
  const std::string line = node_ + "  " + text;
  if (terminal_) {
    std::fprintf(out_, "\r\x1b[K%s", fit_line(line, columns_of(out_)).c_str());
  } else {
    std::fprintf(out_, "%s\n", line.c_str());
  }
  std::fflush(out_);
  line_open_ = terminal_;
}

void ProgressLine::step(std::uint64_t step, double loss, const StepReport& report, TimePoint now) {
  if (!due(shown_, now)) return;
  std::string text = "step " + std::to_string(step) + "/" + std::to_string(steps_);
  text += rounded(loss, "  loss %.4f");
  if (accuracy_ >= 0) text += rounded(100 * accuracy_, "  accuracy %.2f %%");
  show(text + rounded(report.clock, "  clock %.1f  ") + words_for(report), now);
}

void ProgressLine::work(std::string_view what, std::size_t done, std::size_t total, TimePoint now) {
  if (done == 0) work_begun_ = now;
  if (!due(std::max(shown_, work_begun_), now)) return;
  show(
      std::string(what) + ": " + std::to_string(done) + " of " + std::to_string(total) + " samples",
      now);
}

LossWatch::LossWatch(std::size_t classes, std::uint64_t steps, std::string where_to_look)
    : chance_(std::log(static_cast<double>(classes))),
      block_(std::clamp<std::uint64_t>(steps / 4, 50, 250)),
      where_to_look_(std::move(where_to_look)) {}

std::optional<std::string> LossWatch::see(double loss) {
  sum_ += loss;
  if (++in_block_ < block_) return std::nullopt;
  const double mean = std::exchange(sum_, 0) / static_cast<double>(block_);
  in_block_ = 0;
  if (++blocks_ == 1 || told_ || mean < of_chance * chance_) return std::nullopt;
  told_ = true;
  return "the loss of the last " + std::to_string(block_) + " steps is " + rounded(mean) +
         ", and " + rounded(chance_) + " is that of guessing: nothing is learnt; " + where_to_look_;
}

}  // namespace dpwa::train
