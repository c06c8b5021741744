#include "examples/train/program.h"

#include <torch/utils.h>

#include <chrono>
#include <memory>
#include <optional>

#include "adapters/adapter.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/reload.h"
#include "dpwa/core/random.h"
#include "dpwa/log/log.h"
#include "dpwa/stop_signal.h"
#include "examples/train/checkpoint.h"
#include "examples/train/checkpoint_store.h"
#include "examples/train/data_sets.h"
#include "examples/train/errors.h"
#include "examples/train/evaluate.h"
#include "examples/train/models.h"
#include "examples/train/plan.h"
#include "examples/train/report.h"
#include "examples/train/shards.h"
#include "examples/train/streams.h"
#include "examples/train/torch_setup.h"
#include "examples/train/trainer.h"

namespace dpwa::train {
namespace {

// After SIGINT or SIGTERM: for an evaluation, and for all that follows the final checkpoint.
constexpr std::chrono::seconds evaluation_limit(2);
constexpr unsigned stop_limit_seconds = 6;

// The parts of one run, in the order in which they depend on each other.
class Program {
 public:
  explicit Program(const TrainOptions& options);
  int run();

 private:
  void resume();
  void reload();
  bool save(const RunPosition& position);
  bool write(const RunResult& result);
  RunResult result_of(const Trainer& trainer) const;
  std::optional<Evaluation> evaluate_own();
  void leave(RunResult& result);

  TrainOptions options_;
  Config config_;
  c10::Device device_;
  TrainTest data_;
  RunIdentity identity_;
  std::optional<CheckpointStore> checkpoints_;
  std::shared_ptr<Classifier> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<Adapter> adapter_;
  std::optional<SampleStream> samples_;
  RunPosition position_;
  std::optional<Report> report_;
  std::string no_result_;  // why the last one was not written
};

Program::Program(const TrainOptions& options)
    : options_(options),
      config_(load_config(options.config, options.name, options.join)),
      device_(resolve_device(options.device)) {
  open_log(config_).use();
  set_compute_threads(compute_threads(options_, config_));
  data_ = load_data(options_.data, options_.data_dir, options_.seed);
  identity_ = identify(options_, config_, data_.train);
  auto shards = make_shards(options_.split, data_.train.labels, identity_.nodes, options_.seed);
  samples_.emplace(std::move(shards[identity_.rank]),
                   derive_seed(options_.seed, {stream::order, identity_.rank}));
  model_ = make_model(options_.model, data_.train, options_.init_seed);
  torch::manual_seed(derive_seed(options_.seed, {stream::noise, identity_.rank}));
  model_->to(device_);
  optimizer_ = make_optimizer(options_, model_->parameters());
  if (!options_.checkpoint.empty())
    checkpoints_.emplace(options_.checkpoint, config_.self,
                         [](const std::string& what) { log(LogLevel::warn, "train", what); });
  if (options_.resume) {
    resume();
  } else if (checkpoints_ && !checkpoints_->empty()) {
    throw UsageError("--checkpoint: '" + options_.checkpoint.string() + "' holds checkpoints of " +
                     config_.self + "; accepted: with --resume, or another directory");
  }
  if (!adapter_) adapter_ = make_adapter(config_, *model_);
  report_.emplace(
      options_, config_.self, position_.step != 0,
      (total_samples(options_, identity_) + options_.batch_size - 1) / options_.batch_size);
}

void Program::resume() {
  const auto loaded = checkpoints_->load_latest();
  if (!loaded) {
    log(LogLevel::warn, "train",
        "no checkpoint in " + options_.checkpoint.string() + " yet: starting from the beginning");
    return;
  }
  const RunState state = unpack_checkpoint(loaded->body, identity_, *model_, *optimizer_);
  position_ = state.position;
  adapter_ = make_adapter(config_, *model_);
  adapter_->restore(state.adapter);
  log(LogLevel::info, "train",
      "resumed from " + loaded->file.string() + " at step " + std::to_string(position_.step));
}

// A file that is wrong changes nothing: the run goes on as it is.
void Program::reload() {
  reload_or_keep(
      [this] { adapter_->reload(load_config(options_.config, options_.name, options_.join)); });
}

// A checkpoint that cannot be written is no reason to stop training; the older ones are still
// there.
bool Program::save(const RunPosition& position) {
  if (!checkpoints_) return true;
  try {
    const RunState state{identity_, position, adapter_->resume_state()};
    checkpoints_->save(position.step, pack_checkpoint(state, *model_, *optimizer_));
    return true;
  } catch (const std::exception& error) {  // the disk, or memory
    log(LogLevel::error, "train", "no checkpoint written: " + one_line(error));
    return false;
  }
}

// Nor to leave the others without this node at the final average.
bool Program::write(const RunResult& result) {
  try {
    report_->write(result);
    return true;
  } catch (const std::exception& error) {
    const std::string reason = one_line(error);
    if (reason != no_result_) log(LogLevel::error, "train", "no result written: " + reason);
    no_result_ = reason;
    return false;
  }
}

std::optional<Evaluation> Program::evaluate_own() {
  const auto deadline = std::chrono::steady_clock::now() + evaluation_limit;
  return evaluate(*model_, data_.test, device_, [deadline] {
    return stop_signal::received() != 0 && std::chrono::steady_clock::now() > deadline;
  });
}

RunResult Program::result_of(const Trainer& trainer) const {
  RunResult result;
  result.identity = identity_;
  result.position = trainer.position();
  result.backend = config_.backend;
  result.steps = trainer.statistics().summary();
  result.clock = adapter_->resume_state().clock;
  return result;
}

void Program::leave(RunResult& result) {
  if (result.interrupted) {
    adapter_->leave();
    return;
  }
  const FinishReport finished = adapter_->finish();
  if (!finished.averaged) return;
  result.averaged =
      AveragedModel{evaluate_own(), finished.participants, finished.distance_to_average};
}

int Program::run() {
  adapter_->start();
  if (checkpoints_) checkpoints_->remove_unfinished();  // start() refuses a second of this name
  stop_signal::defer(true);
  TrainerOptions trainer_options{options_.batch_size, options_.lr,
                                 options_.schedule,   total_samples(options_, identity_),
                                 options_.eval_every, options_.checkpoint_every,
                                 options_.step_time,  device_};
  Trainer trainer(
      trainer_options,
      {*model_, *optimizer_, *adapter_, data_.train, data_.test, *samples_, report_->metrics(),
       report_->progress(), [] { return stop_signal::received() != 0; },
       [this] {
         if (stop_signal::take_reload()) reload();
       },
       [this](const RunPosition& position) { save(position); }},
      position_);
  const LoopEnd end = trainer.run();
  if (end == LoopEnd::diverged)
    throw std::runtime_error("the loss is not finite after step " +
                             std::to_string(trainer.position().step) +
                             ": training has diverged; try a smaller --lr");
  const bool saved = save(trainer.position());
  RunResult result = result_of(trainer);
  result.interrupted = end == LoopEnd::stopped || stop_signal::received() != 0;
  if (result.interrupted) stop_signal::limit(stop_limit_seconds);
  result.own = evaluate_own();
  report_->own_model(result);
  write(result);
  stop_signal::defer(false);  // all is safe: a signal need not wait for the other nodes
  leave(result);
  const bool written = write(result);
  const bool complete = report_->close(result);
  if (result.interrupted) return 128 + stop_signal::received();
  return saved && written && complete ? 0 : 1;
}

}  // namespace

int run_program(const TrainOptions& options) {
  stop_signal::install();
  Program program(options);
  return program.run();
}

}  // namespace dpwa::train
