#include "adapters/collective/collective_adapter.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "adapters/backend.h"
#include "adapters/collective/engine/operations.h"
#include "adapters/collective/gathering.h"
#include "adapters/common/device_parameters.h"
#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/text.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/group/group_endpoint.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;
using collective::leave_limit;
using collective::RunEnds;

constexpr auto between_notes = std::chrono::milliseconds(100);

bool may_train_apart(const CollectiveConfig& config) {
  return config.on_lost_rank == OnLostRank::gossip ||
         (config.on_lost_rank == OnLostRank::shrink && config.minority == Minority::gossip);
}

}  // namespace

CollectiveAdapter::CollectiveAdapter(const Config& config, torch::nn::Module& model)
    : config_(config),
      flat_(model),
      losses_(flat_.device()),
      transfer_(flat_),
      stepper_(config_.collective, model) {
  if (!config_.join.empty() || config_.self_added)
    throw ConfigError(config_.file.string() + ": '" + config_.self +
                      "' joins, which backend collective does not offer; accepted: a node of the "
                      "file, whose place in it is its rank");
  require_backend(config_);
  collective::require_engine(config_);
  collective::require_device(config_, flat_.device());
  if (may_train_apart(config_.collective)) {
    parameters_ = parameters_in(flat_, static_cast<unsigned>(std::max(1, at::get_num_threads())));
    Config patient = config_;
    patient.gossip.start_wait =
        std::min<Duration>(config_.gossip.start_wait, config_.collective.start_wait / 2);
    gossip_ = std::make_unique<Gossip>(patient, *parameters_);
  }
  starter_.emplace(config_, collective::connector_of(config_).engine, model, transfer_, stepper_,
                   gossip_.get());
}

CollectiveAdapter::~CollectiveAdapter() {
  leave();
}

Endpoint& CollectiveAdapter::endpoint() {
  return gossip_ ? gossip_->node().endpoint() : *endpoint_;
}

void CollectiveAdapter::start() {
  flat_.check();
  const c10::DeviceGuard on_model(flat_.device());  // NCCL uses the GPU that is current
  const TimePoint until = SteadyClock::now() + config_.collective.start_wait;
  if (gossip_) {
    gossip_->serve_also(std::make_unique<group::GroupHandler>(inbox_));
    gossip_->start();
    gossip_->rest();
  } else {
    endpoint_ = group::group_endpoint(config_, inbox_);
    endpoint_->start(config_.collective.start_wait);
  }
  group_session_ = std::make_unique<collective::GroupSession>(
      config_, endpoint().local(), inbox_, starter_->terms(), collective::connector_of(config_));
  phase_ = Phase::together;
  try {
    guarded([&] { starter_->first(*group_session_, until); });
  } catch (...) {
    leave();
    throw;
  }
  stepper_.end_step(transfer_.clock());
  endpoint().local().state = wire::NodeState::ready;
  tell_status({});
}

template <class Work>
void CollectiveAdapter::guarded(const Work& work) {
  try {
    work();
  } catch (const RunEnds& ends) {
    const std::string text = "node '" + config_.self + "' ends at " +
                             collective::at_clock(transfer_.clock()) + ", " + ends.what();
    leave();
    throw std::runtime_error(text);
  }
}

void CollectiveAdapter::move_to(Phase phase) {
  if (phase == Phase::left) return leave();
  phase_ = phase;
}

void CollectiveAdapter::share(const torch::Tensor& state) {
  if (!state.is_cpu() || !state.is_contiguous())
    throw std::invalid_argument("share(): needs a contiguous tensor in host memory");
  transfer_.share(state);
}

void CollectiveAdapter::reload(const Config& fresh) {
  reload_log(fresh, Backend::collective);
  if (phase_ != Phase::made) endpoint().reload_security();
}

void CollectiveAdapter::set_batch_size(std::uint64_t samples) {
  stepper_.set_samples(static_cast<double>(samples));
}

Accumulation CollectiveAdapter::accumulate() {
  if (!is_running()) return {};
  stepper_.set_accumulating(true);
  return Accumulation([this] { stepper_.set_accumulating(false); });
}

void CollectiveAdapter::average_gradients() {
  if (phase_ != Phase::together) return;
  flat_.check();
  guarded([this] { end_exchange(); });
}

std::uint64_t CollectiveAdapter::step_under_way() const {
  return static_cast<std::uint64_t>(std::llround(transfer_.clock())) + 1;
}

// If the exchange failed, the next group repeats it, unless one of its members has the result.
void CollectiveAdapter::end_exchange() {
  auto result = stepper_.exchange();
  while (result.error || !(stops_on_loss() || group_session_->complete(step_under_way()))) {
    if (!move_on(result.error ? &*result.error : nullptr)) return;
    result = stepper_.repeat();
  }
  take(*result.tally);
}

bool CollectiveAdapter::move_on(const CollectiveError* error) {
  if (error != nullptr) give_up_if_it_must(*error);
  std::string lost = group_session_->suspect();
  if (lost.empty())
    lost = error != nullptr ? "a node is lost" : "the others continue without this node";
  starter_->drop(*group_session_);
  if (config_.collective.on_lost_rank == OnLostRank::gossip) {
    move_to(starter_->go_apart(*group_session_, lost));
    return false;
  }
  log(LogLevel::warn, "collective",
      lost + (error != nullptr ? ": the others form the next group" : ""));
  move_to(starter_->next(*group_session_));
  return makes_step();
}

void CollectiveAdapter::give_up_if_it_must(const CollectiveError& error) {
  if (stops_on_loss() || !collective::may_go_on(error)) starter_->give_up(*group_session_, error);
}

// Equal weights are what this back end promises: a difference never heals, and spoils the model.
void CollectiveAdapter::require_equal_weights(const collective::StepTally& tally) {
  std::string names;
  for (const std::size_t rank : collective::differing_ranks(tally.weights))
    names += (names.empty() ? "'" : ", '") + group_session_->name_of(static_cast<int>(rank)) + "'";
  if (names.empty()) return;
  group_session_->group().leave(leave_limit);  // a node may still be reading the checksums
  throw RunEnds(
      "because the weights of " + names +
      " differ from those of the other nodes, and must be equal after each step; look for code "
      "that changes weights, gradients or the optimizer on some nodes only, and for processors of "
      "different types");
}

void CollectiveAdapter::take(const collective::StepTally& tally) {
  require_equal_weights(tally);
  if (stepper_.take(tally))
    log(LogLevel::info, "collective",
        "'" + group_session_->name_of(tally.first_stopping) +
            "' was told to stop: all nodes end after the next step");
}

StepReport CollectiveAdapter::make_step(torch::optim::Optimizer& optimizer,
                                        const torch::Tensor& loss, bool skips) {
  const bool ran = is_running();
  send(loss, /*publishes=*/!skips);
  if (makes_step()) compare(&optimizer);
  // The new state includes this step. A node that was told to stop meanwhile ends before it.
  const bool ended = ran && phase_ == Phase::left;
  if (!stepper_.is_taken_over() && !ended && !skips) optimizer.step();
  stepper_.report().made = !ended;
  return update_wait(loss);
}

void CollectiveAdapter::send(const torch::Tensor& loss, bool publishes) {
  if (!is_running()) return;
  flat_.check();
  if (phase_ == Phase::together && stepper_.is_open()) guarded([this] { end_exchange(); });
  if (phase_ == Phase::apart && publishes) gossip_->update_send(losses_.read(loss));
}

StepReport CollectiveAdapter::update_wait(const torch::Tensor& loss) {
  // Those that call step() compare their optimizers; in halves it is not known.
  if (makes_step()) compare(nullptr);
  if (phase_ == Phase::apart) {
    stepper_.report() = gossip_->update_wait(losses_.read(loss));
    transfer_.set_clock(stepper_.report().clock);
    guarded([this] { move_to(starter_->come_together(*group_session_)); });
  } else if (makes_step()) {
    transfer_.set_clock(clock_after_publish(transfer_.clock()));
    guarded([this] { between_steps(); });
  }
  tell_status(loss);
  return stepper_.end_step(transfer_.clock());
}

void CollectiveAdapter::compare(torch::optim::Optimizer* optimizer) {
  if (!transfer_.is_to_compare()) return;
  collective::ProcessGroup& group = collective::process_group(*group_session_);
  group_session_->watch().begin_wait("comparing optimizers");
  try {
    transfer_.compare(group, optimizer);
    // All have found their states equal, those that join too: from now on these are members.
    const std::uint64_t step = step_under_way();
    group_session_->note_state(step, derive_seed(group.epoch(), {step}));
  } catch (const CollectiveError& error) {
    // At the start all end with the same error, and a node may still be reading it.
    if (transfer_.plan().fresh && !collective::may_go_on(error)) group.leave(leave_limit);
    guarded([&] { give_up_if_it_must(error); });
    // The next exchange will find that a node is lost. This node cannot step without the result,
    // and takes over the state later.
    if (transfer_.is_broken()) stepper_.take_over();
  }
  group_session_->watch().end_wait();
}

// All members come here after the same exchange, with the same tally.
void CollectiveAdapter::between_steps() {
  starter_->take_place(*group_session_);
  try {
    transfer_.hand_over_program(collective::process_group(*group_session_));
  } catch (const CollectiveError& error) {
    if (!collective::may_go_on(error)) starter_->give_up(*group_session_, error);
    return;  // the next exchange will find it
  }
  if (stops_on_loss()) return;
  if (stepper_.all_have_next_group()) return move_to(starter_->grow(*group_session_));
  stepper_.tell_next_group(group_session_->former().formed());
}

bool CollectiveAdapter::should_stop(bool wanted) {
  if (!is_running() || !stops_on_loss()) return wanted;
  if (wanted) stepper_.tell_stop();
  return stepper_.all_stop();
}

void CollectiveAdapter::tell_status(const torch::Tensor& loss) {
  const TimePoint now = SteadyClock::now();
  if (!is_running() || now - told_ < between_notes) return;
  told_ = now;
  StatusNotes& notes = endpoint().local().notes;
  notes.set("clock", nlohmann::json(transfer_.clock()).dump());
  notes.set("gradient_bytes", std::to_string(stepper_.averaged_bytes()));
  // A loss on a device is told with the next notes: it is there by then, and nothing waits for it.
  auto before = std::exchange(loss_, losses_.read(loss));
  const double value = flat_.device().is_cpu() || !before ? loss_() : before();
  if (std::isfinite(value)) notes.set("loss", nlohmann::json(value).dump());
}

FinishReport CollectiveAdapter::finish() {
  if (is_running()) flat_.check();
  guarded([this] { run_out(); });
  stepper_.end_step(transfer_.clock());  // those exchanges were no steps
  if (phase_ == Phase::apart) {
    finished_ = gossip_->finish();
  } else if (phase_ == Phase::together) {
    const std::size_t size = group_session_->place().size;
    finished_.averaged = size > 1;
    finished_.participants = size;
    finished_.enough = size >= config_.gossip.min_nodes;
    log(LogLevel::info, "collective", "final model of " + config::counted(size, "node"));
  }
  leave();
  return finished_;
}

// Continues without batches until no member has one. Then all take the model of a member that was
// at work last, and leave together.
void CollectiveAdapter::run_out() {
  while (phase_ == Phase::together) {
    const auto result = stepper_.exchange_joined();
    std::optional<CollectiveError> error = result.error;
    if (!error) {
      const collective::StepTally& tally = *result.tally;
      require_equal_weights(tally);
      if (tally.first_stopping >= 0) {
        const std::string who = group_session_->name_of(tally.first_stopping);
        leave();
        throw std::runtime_error("node '" + config_.self + "' ends because '" + who +
                                 "' was told to stop");
      }
      stepper_.take(tally);
      if (tally.joined < group_session_->group().size()) {
        compare(nullptr);  // those that still step compare theirs
        between_steps();
        continue;
      }
      try {
        return take_final_model();
      } catch (const CollectiveError& lost) {
        error = lost;
      }
    }
    give_up_if_it_must(*error);
    starter_->drop(*group_session_);
    move_to(starter_->next(*group_session_));
  }
}

void CollectiveAdapter::take_final_model() {
  const at::NoGradGuard no_grad;
  collective::Operations operations(collective::process_group(*group_session_));
  group_session_->watch().begin_wait("the model of the last node at work");
  if (const auto rank = stepper_.last_at_work())
    operations.broadcast({"the model", flat_.memory()}, *rank);
  if (!stops_on_loss()) operations.barrier();
  group_session_->watch().end_wait();
  group_session_->note_left();
  stepper_.drop();
  group_session_->group().leave(leave_limit);
}

void CollectiveAdapter::leave() {
  stepper_.drop();
  if (group_session_) {
    const bool together = group_session_->together();
    if (stops_on_loss() || (together && group_session_->group().aborted())) {
      group_session_->note_left();
    } else {
      group_session_->leave();
    }
    // All leave after the same step, and one may still be receiving from this node.
    if (stepper_.all_stop() && group_session_->together() && !group_session_->group().broken())
      group_session_->group().leave(leave_limit);
    group_session_.reset();
  }
  if (gossip_) gossip_->leave();
  if (endpoint_) {
    endpoint_->local().state = wire::NodeState::finished;
    endpoint_->stop();
  }
  if (is_running()) phase_ = Phase::left;
}

ResumeState CollectiveAdapter::resume_state() const {
  ResumeState state{transfer_.clock(), {}};
  if (gossip_) {
    const GossipState descent = gossip_->resume_state();
    state.own = {{"lineage", descent.lineage}, {"incarnation", descent.incarnation}};
  }
  return state;
}

void CollectiveAdapter::restore(const ResumeState& state) {
  transfer_.set_clock(state.clock);
  const auto lineage = state.own.find("lineage");
  const auto incarnation = state.own.find("incarnation");
  if (gossip_ && lineage != state.own.end() && incarnation != state.own.end())
    gossip_->restore({state.clock, lineage->second, incarnation->second});
}

std::unique_ptr<Adapter> make_collective(const Config& config, torch::nn::Module& model) {
  return std::make_unique<CollectiveAdapter>(config, model);
}

}  // namespace dpwa
