#pragma once

#include <c10/core/Device.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "adapters/adapter.h"
#include "adapters/common/loss_reader.h"
#include "examples/train/models.h"
#include "examples/train/report.h"
#include "examples/train/run_state.h"
#include "examples/train/samples.h"

namespace dpwa::train {

// What the loop uses; all objects outlive it.
struct TrainerParts {
  const TrainOptions& options;
  Classifier& model;
  torch::optim::Optimizer& optimizer;
  Adapter& adapter;
  BatchLoss& loss_of;
  const Dataset& test;
  Samples& samples;
  Report& report;
  std::function<bool()> stop_requested = [] { return false; };
  std::function<void()> between_steps = [] {};
  std::function<void(const RunPosition&)> checkpoint = [](const RunPosition&) {};
  c10::Device device = c10::kCPU;  // of the model
  bool late_losses = false;        // a loss is read while the next step is under way (GPU)
  // The clock is the step that the servers of a run count.
  bool follows_clock = false;  // a node that was left out goes on at the step of the others
  bool goes_back = false;      // also when that is an earlier one
};

enum class LoopEnd {
  done,     // the samples of the run are taken
  stopped,  // stop_requested() said so after a step, here or on a node that steps with this one; or
            // a step that waited for others was not made, and its samples are taken again
  diverged,  // the loss is not finite; the step that showed it was not made (GPU: it was, unlike
             // the one after it)
};

// Says that a node at step `from` goes on at step `to`, where the run is. No effect for the same.
void log_move(std::uint64_t from, std::uint64_t to);

// The training loop. After the last sample the caller evaluates. One owner, one thread.
class Trainer {
 public:
  Trainer(TrainerParts parts, RunPosition position)
      : options_(parts.options), parts_(parts), position_(position), losses_(parts.device) {}

  LoopEnd run();

  const RunPosition& position() const { return position_; }
  // Whether the metrics already have an evaluation at position(), as after a stop.
  bool has_evaluated() const { return evaluated_ == position_.step; }

 private:
  std::optional<LoopEnd> step();  // why the loop ends before it was made
  // Reports the last step made, with its own loss, unless that was done. False: the loss is not
  // finite.
  bool tell();
  double set_learning_rate();  // that of the next step
  void evaluate_now();
  double seconds(TimePoint now) const;

  const TrainOptions& options_;
  TrainerParts parts_;
  RunPosition position_;
  std::optional<std::uint64_t> evaluated_;  // the step of the last evaluation
  LossReader losses_;
  // The step that is not reported yet: on a GPU its loss is read while the next one is under way.
  std::optional<MadeStep> made_;
  std::function<double()> loss_;  // of made_; empty: it had none
  TimePoint begun_{};
  double seconds_before_ = 0;
};

}  // namespace dpwa::train
