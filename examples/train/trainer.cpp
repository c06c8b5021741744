#include "examples/train/trainer.h"

#include <ATen/ops/cross_entropy_loss.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "examples/train/batch.h"
#include "examples/train/evaluate.h"
#include "examples/train/learning_rate.h"

namespace dpwa::train {
namespace {

using Clock = std::chrono::steady_clock;

bool due(std::uint64_t step, std::uint64_t every) {
  return every != 0 && step % every == 0;
}

}  // namespace

LoopEnd Trainer::run() {
  begun_ = Clock::now();
  seconds_before_ = position_.train_seconds;
  parts_.samples.seek(position_.samples);
  parts_.model.train();
  while (position_.samples < options_.total_samples) {
    if (!step()) return LoopEnd::diverged;
    parts_.between_steps();
    if (due(position_.step, options_.eval_every)) evaluate_now();
    position_.train_seconds = seconds(Clock::now());
    if (due(position_.step, options_.checkpoint_every)) {
      if (parts_.metrics) parts_.metrics->flush();  // so a resumed run leaves no gap in them
      parts_.checkpoint(position_);
    }
    if (parts_.stop_requested()) return LoopEnd::stopped;
  }
  return LoopEnd::done;
}

bool Trainer::step() {
  const TimePoint start = Clock::now();
  const std::uint64_t count =
      std::min(options_.batch_size, options_.total_samples - position_.samples);
  const Batch batch = make_batch(parts_.train, parts_.samples.next(count), options_.device);
  set_learning_rate();
  parts_.optimizer.zero_grad();
  const at::Tensor loss = at::cross_entropy_loss(parts_.model.forward(batch.images), batch.labels);
  loss.backward();
  const auto known_loss = losses_.read(loss);
  // Before the step: parameters that gave such a loss are not published.
  if (known_loss && !std::isfinite(*known_loss)) return false;
  const StepReport report = parts_.adapter.step(parts_.optimizer, loss);
  ++position_.step;
  position_.samples += count;

  if (options_.step_time > Duration::zero())
    std::this_thread::sleep_until(start + options_.step_time);
  const TimePoint end = Clock::now();
  const double step_ms = std::chrono::duration<double, std::milli>(end - start).count();
  const double shown_loss = known_loss.value_or(std::numeric_limits<double>::quiet_NaN());
  statistics_.add(report, step_ms);
  if (parts_.metrics)
    parts_.metrics->step(seconds(end), position_.step, shown_loss, step_ms, report, end);
  if (parts_.progress) parts_.progress->step(position_.step, shown_loss, report, end);
  return true;
}

void Trainer::set_learning_rate() {
  if (options_.schedule == Schedule::constant) return;
  const double done =
      static_cast<double>(position_.samples) / static_cast<double>(options_.total_samples);
  for (auto& group : parts_.optimizer.param_groups())
    group.options().set_lr(learning_rate(options_.schedule, options_.lr, done));
}

void Trainer::evaluate_now() {
  const auto result = evaluate(parts_.model, parts_.test, options_.device, parts_.stop_requested);
  if (!result) return;
  if (parts_.metrics)
    parts_.metrics->evaluation(seconds(Clock::now()), position_.step, result->accuracy,
                               result->loss);
  if (parts_.progress) parts_.progress->accuracy(result->accuracy);
}

double Trainer::seconds(TimePoint now) const {
  return seconds_before_ + std::chrono::duration<double>(now - begun_).count();
}

}  // namespace dpwa::train
