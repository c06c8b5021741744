#include "examples/train/trainer.h"

#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "dpwa/log/log.h"
#include "examples/train/models.h"
#include "examples/train/plan.h"

namespace dpwa::train {
namespace {

using Clock = std::chrono::steady_clock;

// Since `before`: a step may lead to where the others are.
bool due(std::uint64_t before, std::uint64_t step, std::uint64_t every) {
  return every != 0 && step > before && step / every != before / every;
}

}  // namespace

void log_move(std::uint64_t from, std::uint64_t to) {
  const std::string step = " step " + std::to_string(to);
  if (to > from) {
    log(LogLevel::info, "train", "continues at" + step + ", where the others are");
  } else if (to < from) {
    log(LogLevel::info, "train",
        "goes back from step " + std::to_string(from) + " to" + step +
            ", where the run is, and makes the steps between again");
  }
}

LoopEnd Trainer::run() {
  begun_ = Clock::now();
  seconds_before_ = position_.train_seconds;
  parts_.samples.seek(position_);
  parts_.model.train();
  while (!parts_.samples.ended()) {
    const std::uint64_t before = position_.step;
    if (const auto end = step()) return *end;
    parts_.between_steps();
    const bool goes_on = !parts_.samples.ended();  // else the caller evaluates
    const bool evaluates = goes_on && due(before, position_.step, options_.eval_every);
    const bool saves = due(before, position_.step, options_.checkpoint_every);
    if ((!goes_on || evaluates || saves) && !tell()) return LoopEnd::diverged;
    if (evaluates) evaluate_now();
    position_.train_seconds = seconds(Clock::now());
    if (saves) {
      parts_.report.flush();
      parts_.checkpoint(position_);
    }
    if (parts_.adapter.should_stop(parts_.stop_requested()))
      return tell() ? LoopEnd::stopped : LoopEnd::diverged;
  }
  return LoopEnd::done;
}

std::optional<LoopEnd> Trainer::step() {
  const TimePoint start = Clock::now();
  const double rate = set_learning_rate();
  const auto samples = parts_.samples.next(parts_.adapter.place());
  parts_.optimizer.zero_grad();
  parts_.adapter.set_batch_size(samples.size());
  parts_.adapter.set_optimizer(parts_.optimizer);
  at::Tensor loss;
  std::function<double()> value;
  if (!samples.empty()) {
    loss = parts_.loss_of(samples);
    loss.backward();
    value = losses_.read(loss);
  }
  // Checked before the step: parameters with such a loss are not published.
  const bool is_late = value && parts_.late_losses;
  if (!tell() || (value && !is_late && !std::isfinite(value()))) return LoopEnd::diverged;
  const StepReport report = parts_.adapter.step(parts_.optimizer, loss);
  if (!report.made) return LoopEnd::stopped;
  ++position_.step;
  // Under the other back ends these are outcomes of pulls, which do not undo the step.
  const bool dropped = parts_.follows_clock &&
                       (report.outcome == Outcome::dropped || report.outcome == Outcome::rejected);
  (dropped ? position_.passed_over : position_.samples) += samples.size();
  const std::uint64_t own = position_.step;
  parts_.samples.settle(position_);
  if (parts_.follows_clock)
    parts_.samples.go_on_at(static_cast<std::uint64_t>(report.clock), position_, parts_.goes_back);
  log_move(own, position_.step);

  if (options_.step_time > Duration::zero())
    std::this_thread::sleep_until(start + options_.step_time);
  const TimePoint end = Clock::now();
  const double step_ms = std::chrono::duration<double, std::milli>(end - start).count();
  made_ = MadeStep{position_.step, seconds(end), rate, step_ms, report, end};
  loss_ = std::move(value);
  if (!is_late) tell();
  return std::nullopt;
}

bool Trainer::tell() {
  const auto made = std::exchange(made_, std::nullopt);
  if (!made) return true;
  const double loss = loss_ ? loss_() : std::numeric_limits<double>::quiet_NaN();
  parts_.report.step(*made, loss);
  return !loss_ || std::isfinite(loss);
}

double Trainer::set_learning_rate() {
  const double rate = learning_rate(options_.schedule, options_.lr, parts_.samples.done());
  if (options_.schedule == Schedule::constant) return rate;
  for (auto& group : parts_.optimizer.param_groups()) group.options().set_lr(rate);
  return rate;
}

void Trainer::evaluate_now() {
  const auto result = evaluate(parts_.model, parts_.test, parts_.device, parts_.stop_requested,
                               parts_.report.progress("evaluating"), options_.evaluate_threads);
  if (!result) return;
  evaluated_ = position_.step;
  parts_.report.evaluation(seconds(Clock::now()), position_.step, *result);
  parts_.adapter.show("test accuracy", result->accuracy);
  parts_.adapter.show("test loss", result->loss);
}

double Trainer::seconds(TimePoint now) const {
  return seconds_before_ + std::chrono::duration<double>(now - begun_).count();
}

}  // namespace dpwa::train
