#include "examples/train/program.h"

#include <ATen/ops/zeros.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "adapters/adapter.h"
#include "adapters/common/batch_norm.h"
#include "adapters/launch/meeting.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/processors.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/reload.h"
#include "dpwa/config/text.h"
#include "dpwa/launch/launched_config.h"
#include "dpwa/launch/place.h"
#include "dpwa/launch/preemption.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"
#include "examples/train/checkpoint.h"
#include "examples/train/checkpoint_store.h"
#include "examples/train/data_sets.h"
#include "examples/train/files.h"
#include "examples/train/models.h"
#include "examples/train/options.h"
#include "examples/train/plan.h"
#include "examples/train/report.h"
#include "examples/train/samples.h"
#include "examples/train/saved_model.h"
#include "examples/train/torch_setup.h"
#include "examples/train/trainer.h"

namespace dpwa::train {
namespace {

// After a signal to stop: for an evaluation, and for all that follows it and the final checkpoint
// where DPWA_GRACE_S does not tell how long that may take.
constexpr std::chrono::seconds evaluation_limit(2);
constexpr unsigned stop_limit_seconds = 6;

// The cluster file, with the options that replace its keys.
Config configured(Config config, const TrainOptions& options) {
  check_company(options, config);
  if (!config.gossip.seed || options.seed_given) config.gossip.seed = options.seed;
  if (options.min_nodes == 0) return config;
  if (config.gossip.daemon)
    throw ConfigError(
        "--min-nodes: with gossip.daemon the node process decides; accepted: "
        "gossip.min_nodes in the cluster file");
  config.gossip.min_nodes = static_cast<std::uint32_t>(options.min_nodes);
  return config;
}

// The parts of one run, in the order in which they depend on each other.
class Program {
 public:
  explicit Program(const TrainOptions& options);
  int run();

 private:
  void tell_nodes();
  std::shared_ptr<Classifier> fresh_model() const {
    return make_model(options_.model, data_.train, options_.init_seed);
  }
  const RunIdentity& identity() const { return plan_->identity; }
  Samples make_samples();
  void resume();
  void catch_up();
  void take_reload();
  bool save(const RunPosition& position);
  bool write(const RunResult& result);
  std::optional<Evaluation> evaluate_own();
  void reestimate();
  // False: the final average was over too few nodes, or there is no final model.
  bool leave(RunResult& result);

  TrainOptions options_;
  LaunchedConfig cluster_;
  Config config_;
  std::vector<c10::Device> devices_;
  c10::Device device_;  // the first, of the model
  TrainTest data_;
  std::optional<Plan> plan_;
  std::optional<CheckpointStore> checkpoints_;
  struct Resumed {
    std::filesystem::path file;
    double clock = 0;
  };
  std::optional<Resumed> resumed_;  // the checkpoint
  std::optional<ModelFiles> models_;
  std::shared_ptr<Classifier> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<Adapter> adapter_;
  RunLength length_;
  torch::Tensor shared_state_;  // Samples::State
  std::optional<Samples> samples_;
  RunPosition position_;
  std::optional<Report> report_;
  std::string no_result_;  // why the last one was not written
  BackgroundReload reload_{[this] { return cluster_.reload(); }};
};

Program::Program(const TrainOptions& options)
    : options_(options),
      cluster_(options.config, options.name, options.join, launch::meet),
      config_(configured(cluster_.config(), options)),
      devices_(resolve_devices(options_, config_)),
      device_(devices_.front()) {
  make_current(device_);
  require_backend(config_);
  stop_signal::set_preempted_code(launch::preempted_code(config_, launch::launcher_environment()));
  if (const auto grace = launch::grace_seconds(launch::launcher_environment()))
    stop_signal::set_grace(*grace);
  require_data_directory(options_);
  open_log(config_).use();
  if (!device_.is_cpu()) log(LogLevel::info, "train", "the model is on " + device_.str());
  if (!options_.checkpoint.empty()) {
    checkpoints_.emplace(options_.checkpoint, config_.self,
                         [](const std::string& what) { log(LogLevel::warn, "train", what); });
    checkpoints_->require_directory(options_.resume);
  }
  if (const auto& share = cluster_.share();
      share && !options_.shard && options_.split.kind != SplitKind::shared)
    options_.shard = {static_cast<std::size_t>(share->index), static_cast<std::size_t>(share->of)};
  models_.emplace(options_, config_);
  if (const auto rate = rate_of_workers(options_, config_)) {
    options_.lr = rate->lr;
    log(LogLevel::info, "train", rate->words);
  }
  set_compute_threads(compute_threads(options_, config_, processor_count()));
  data_ = load_data(options_.data, options_.data_dir, options_.seed);
  plan_.emplace(options_, config_, data_.train);
  length_ = plan_->length();
  model_ = fresh_model();
  torch::manual_seed(plan_->node_stream(SeedRole::noise));
  samples_.emplace(make_samples());
  model_->to(device_);
  optimizer_ = make_optimizer(options_, model_->parameters());
  if (options_.reestimate_batch_norm && !has_batch_norm(*model_))
    log(LogLevel::warn, "train",
        "--reestimate-batchnorm: " + identity().model +
            " has no BatchNorm: nothing will be measured");
  if (options_.resume) resume();
  if (!adapter_) adapter_ = make_adapter(config_, *model_);
  adapter_->share(shared_state_);
  for (const auto& [option, value] : plan_->common_terms()) adapter_->require_same(option, value);
  samples_->seek(position_);
  const std::uint64_t steps =
      length_.steps_of(options_.batch_size, identity().shares_data ? identity().nodes : 1);
  report_.emplace(options_, config_.self, position_.step != 0, steps,
                  LossWatch(data_.train.classes, steps, where_to_look(options_, config_)));
  tell_nodes();
}

// Writes the nodes that a launcher has started, which no file lists, for `dpwa status`.
void Program::tell_nodes() {
  if (!cluster_.nodes_have_met() || config_.self_index() != 0 || options_.run_dir.empty()) return;
  const std::filesystem::path file = options_.run_dir / "cluster.yaml";
  std::error_code missing;
  if (std::filesystem::equivalent(file, options_.config, missing)) {
    log(LogLevel::warn, "train",
        file.string() +
            " is the cluster file of this start, and stays as it is; for one with the "
            "nodes that have met, give another --run-dir");
    return;
  }
  write_file_atomically(file, {to_yaml(config_)});
}

Samples Program::make_samples() {
  shared_state_ = at::zeros({2}, at::kLong);
  const Samples::State state(shared_state_.mutable_data_ptr<std::int64_t>(), 2);
  if (identity().shares_data) {
    log(LogLevel::info, "train", plan_->data_words(data_.train.size()));
    auto all = make_shards({SplitKind::shared, 0}, data_.train.labels, 1, options_.seed);
    SampleStream order(std::move(all.front()),
                       SeedStreams(options_.seed).common(SeedRole::shared_order));
    return Samples::shared(std::move(order), options_.batch_size, length_,
                           has_batch_norm(*model_) ? 2 : 1, state);
  }
  auto shards = make_shards(options_.split, data_.train.labels, identity().nodes, options_.seed);
  Shard& own = shards[identity().rank];
  log(LogLevel::info, "train", plan_->data_words(own.size()));
  SampleStream order(std::move(own), plan_->node_stream(SeedRole::order));
  return Samples::own(std::move(order), options_.batch_size, length_.samples, state,
                      plan_->common_length());
}

void Program::resume() {
  const auto loaded = checkpoints_->load_latest();
  if (!loaded) {
    const std::string directory = options_.checkpoint.string();
    const std::string others = config::joined(checkpoints_->other_nodes());
    log(LogLevel::warn, "train",
        (others.empty()
             ? "no checkpoint in " + directory + " yet"
             : directory + " holds checkpoints of " + others + ", none of " + config_.self) +
            ": starting from the beginning");
    return;
  }
  const RunState state = unpack_checkpoint(loaded->body, identity(), *model_, *optimizer_);
  position_ = carried_over(state, identity());
  adapter_ = make_adapter(config_, *model_);
  adapter_->restore(state.adapter);
  resumed_ = {loaded->file, state.adapter.clock};
  log(LogLevel::info, "train",
      "resumed from " + loaded->file.string() + " at step " + std::to_string(position_.step));
  if (const auto why = plan_->nothing_left(position_)) log(LogLevel::warn, "train", *why);
}

// A wrong file changes nothing: the run continues with the old settings.
void Program::take_reload() {
  if (stop_signal::take_reload()) reload_.begin();
  reload_.poll([this](Config fresh) { adapter_->reload(configured(std::move(fresh), options_)); });
}

// Training continues when a checkpoint cannot be written; the older checkpoints still exist.
bool Program::save(const RunPosition& position) {
  if (!checkpoints_) return true;
  try {
    adapter_->take_optimizer_state(*optimizer_);
    const RunState state{identity(), position, adapter_->resume_state()};
    checkpoints_->save(position.step, pack_checkpoint(state, *model_, *optimizer_));
    log_event(EventKind::checkpoint, LogLevel::debug, "train",
              "checkpoint of step " + std::to_string(position.step) + " written");
    return true;
  } catch (const std::exception& error) {  // the disk, or memory
    log(LogLevel::error, "train", "no checkpoint written: " + one_line(error));
    return false;
  }
}

// A result that cannot be written does not stop the node either: the others need it for the final
// average.
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
  const auto late = [deadline] {
    return stop_signal::received() != 0 && std::chrono::steady_clock::now() > deadline;
  };
  return evaluate(*model_, data_.test, device_, late, report_->progress("evaluating"),
                  options_.evaluate_threads);
}

void Program::reestimate() {
  const std::size_t layers = reestimate_batch_norm(*model_, data_.train, options_.seed, device_,
                                                   report_->progress("measuring BatchNorm"));
  log(LogLevel::info, "train",
      "measured the statistics of " + std::to_string(layers) +
          " BatchNorm layers again on the averaged model");
}

bool Program::leave(RunResult& result) {
  if (result.interrupted) {
    adapter_->leave();
    return true;
  }
  const FinishReport finished = adapter_->finish();
  result.lost_final_model = finished.lost_final_model;
  if (stop_signal::received() != 0 && !finished.averaged) return true;
  const bool measures = options_.reestimate_batch_norm && has_batch_norm(*model_);
  if (measures && !finished.averaged)
    log(LogLevel::warn, "train",
        "--reestimate-batchnorm: no averaged model, so its BatchNorm is not measured");
  if (finished.averaged) {
    if (measures) reestimate();
    result.averaged =
        AveragedModel{evaluate_own(), finished.participants, finished.distance_to_average};
    result.saved &= models_->write_averaged(*model_, result);
  }
  if (!finished.averaged && !finished.lost_final_model && report_->lacks_final_model(result)) {
    result.lost_final_model = true;
    log(LogLevel::error, "train",
        "an earlier process of this node did not get the final model of all nodes, and the servers "
        "have none either: they have begun anew since");
  }
  if (!finished.enough)
    log(LogLevel::error, "train",
        "too few nodes at the end: " + std::to_string(finished.participants) + ", where " +
            std::to_string(config_.gossip.min_nodes) +
            " are required (gossip.min_nodes or --min-nodes)");
  return finished.enough && !result.lost_final_model;
}

// When all nodes step together, the position of the run counts, not that of the own checkpoint.
void Program::catch_up() {
  const std::uint64_t step_before = position_.step;
  samples_->settle(position_);
  const auto step = static_cast<std::uint64_t>(adapter_->resume_state().clock);
  if (config_.backend == Backend::kvstore)
    samples_->go_on_at(step, position_, step_together(config_));
  if (position_.step == step_before) return;
  log_move(step_before, position_.step);
  if (const auto why = plan_->nothing_left(position_, {"the run", step})) {
    log(LogLevel::warn, "train", *why);
    report_->keep_old_lines();
  }
}

int Program::run() {
  try {
    adapter_->start();
  } catch (const std::runtime_error& error) {
    if (stop_signal::received() == 0) throw;
    log(LogLevel::info, "train", one_line(error));
    return stop_signal::exit_code();
  }
  if (resumed_ && adapter_->resume_state().clock < resumed_->clock)
    checkpoints_->keep(resumed_->file);
  catch_up();
  if (checkpoints_) checkpoints_->remove_unfinished();  // start() refuses a second of this name
  stop_signal::defer(true);
  BatchLoss loss_of(*model_, data_.train, devices_, [this] { return fresh_model(); });
  Trainer trainer({options_, *model_, *optimizer_, *adapter_, loss_of, data_.test, *samples_,
                   *report_, [] { return stop_signal::received() != 0; }, [this] { take_reload(); },
                   [this](const RunPosition& position) { save(position); }, device_,
                   !device_.is_cpu(), config_.backend == Backend::kvstore, step_together(config_)},
                  position_);
  const LoopEnd end = trainer.run();
  if (end == LoopEnd::diverged)
    throw std::runtime_error("the loss is not finite after step " +
                             std::to_string(trainer.position().step) + ": training has diverged; " +
                             where_to_look(options_, config_));
  RunResult result;
  result.identity = identity();
  result.position = trainer.position();
  result.backend = config_.backend;
  result.steps = report_->statistics();
  result.clock = adapter_->resume_state().clock;
  result.saved = save(trainer.position());
  result.interrupted = end == LoopEnd::stopped || stop_signal::received() != 0;
  result.preempted = stop_signal::preempted();
  if (const char* signal = ::sigabbrev_np(stop_signal::received()))
    log(LogLevel::info, "train",
        std::string("told to stop by SIG") + signal +
            (result.preempted ? ", a notice of a preemption" : "") + ", after step " +
            std::to_string(result.position.step));
  stop_signal::limit(stop_limit_seconds);
  result.own = evaluate_own();
  if (result.own && !trainer.has_evaluated())
    report_->evaluation(result.position.train_seconds, result.position.step, *result.own);
  write(result);
  result.saved &= models_->write_own(*model_, result);
  const bool enough = leave(result);
  if (stop_signal::received() != 0) result.interrupted = true;  // while it waited for the others
  result.preempted = stop_signal::preempted();
  const bool written = write(result);
  const bool complete = report_->close(result, models_->words());
  if (result.interrupted && stop_signal::received() == 0) {
    log(LogLevel::error, "train", "stopped because another node was told to stop");
    return 1;
  }
  const bool kept = result.saved && written && complete;
  if (result.interrupted)
    return kept || stop_signal::exit_code() != 0 ? stop_signal::exit_code() : 1;
  return kept && enough ? 0 : 1;
}

}  // namespace

int run_program(const TrainOptions& options) {
  stop_signal::install("dpwa-train");
  stop_signal::set_preempted_code(launch::preempted_code({}, launch::launcher_environment()));
  if (options.find_batch) return find_batch(options);
  Program program(options);
  return program.run();
}

}  // namespace dpwa::train
