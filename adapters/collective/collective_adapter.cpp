#include "adapters/collective/collective_adapter.h"

#include <ATen/Parallel.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "adapters/backend.h"
#include "adapters/collective/engine/agreement.h"
#include "adapters/collective/engine/operations.h"
#include "adapters/collective/gathering.h"
#include "adapters/collective/model_terms.h"
#include "adapters/collective/state_sync.h"
#include "dpwa/base/time.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/open_log.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/group/group_endpoint.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/progress.h"

namespace dpwa {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto between_notes = std::chrono::milliseconds(100);

// The number that goes with every step: that of the next group, if it has formed for this node.
constexpr std::uint64_t group_mask = (1U << 24) - 1;

bool may_train_apart(const CollectiveConfig& config) {
  return config.on_lost_rank == OnLostRank::gossip ||
         (config.on_lost_rank == OnLostRank::shrink && config.minority == Minority::gossip);
}

std::function<double()> value_of(const torch::Tensor& loss) {
  if (!loss.defined() || loss.numel() != 1)
    return [] { return std::numeric_limits<double>::quiet_NaN(); };
  return [loss] { return loss.item<double>(); };
}

}  // namespace

CollectiveAdapter::CollectiveAdapter(const Config& config, torch::nn::Module& model)
    : config_(config), model_(model), flat_(model) {
  if (!flat_.device().is_cpu())
    fail_at_key(config_, "backend",
                "'collective' is not offered for a model on " + flat_.device().str() +
                    "; accepted: gossip, or a model in host memory (device cpu)");
  if (!config_.join.empty() || config_.self_added)
    throw ConfigError(config_.file.string() + ": '" + config_.self +
                      "' joins, which backend collective does not offer; accepted: a node of the "
                      "file, whose place in it is its rank");
  require_backend(config_);
  collective::require_engine(config_);
  place_ = place_in_file(config_);
  terms_ = collective::file_terms(config_);
  std::ranges::copy(config::shared_settings(config_, "collective"), std::back_inserter(terms_));
  if (!may_train_apart(config_.collective)) return;
  auto* data = static_cast<std::byte*>(flat_.memory().mutable_data_ptr());
  parameters_ = std::make_unique<HostParameters>(
      flat_.manifest(), std::span(data, flat_.manifest().total_bytes()),
      static_cast<unsigned>(std::max(1, at::get_num_threads())));
  Config patient = config_;
  patient.gossip.start_wait =
      std::min<Duration>(config_.gossip.start_wait, config_.collective.start_wait / 2);
  gossip_ = std::make_unique<Gossip>(patient, *parameters_);
}

CollectiveAdapter::~CollectiveAdapter() {
  leave();
}

Endpoint& CollectiveAdapter::endpoint() {
  return gossip_ ? gossip_->node().endpoint() : *endpoint_;
}

void CollectiveAdapter::start() {
  flat_.check();
  const TimePoint until = SteadyClock::now() + config_.collective.start_wait;
  if (gossip_) {
    gossip_->serve_also(std::make_unique<group::GroupHandler>(inbox_));
    gossip_->start();
    gossip_->rest();
  } else {
    endpoint_ = group::group_endpoint(config_, inbox_);
    endpoint_->start(config_.collective.start_wait);
  }
  Settings terms = terms_;
  std::ranges::copy(collective::model_terms(model_), std::back_inserter(terms));
  group_session_ = std::make_unique<collective::GroupSession>(config_, endpoint().local(), inbox_,
                                                              std::move(terms));
  phase_ = Phase::running;
  form_first_group(until);
  place_ = group_session_->place();
  taken_over_ = false;
  endpoint().local().state = wire::NodeState::ready;
  tell_status({});
}

void CollectiveAdapter::share(const torch::Tensor& state) {
  if (!state.is_cpu() || !state.is_contiguous())
    throw std::invalid_argument("share(): needs a contiguous tensor in host memory");
  shared_state_ = state;
}

void CollectiveAdapter::require_same(const std::string& what, const std::string& value) {
  terms_.emplace_back(what, value);
}

void CollectiveAdapter::reload(const Config& fresh) {
  reload_log(fresh, Backend::collective);
  if (phase_ != Phase::made) endpoint().reload_security();
}

void CollectiveAdapter::set_batch_size(std::uint64_t samples) {
  samples_ = static_cast<double>(samples);
  if (is_running() && reducer_) reducer_->set_samples(samples_);
}

Accumulation CollectiveAdapter::accumulate() {
  if (!is_running()) return {};
  const auto set = [this](bool on) {
    accumulating_ = on;
    if (reducer_) reducer_->set_accumulating(on);
  };
  set(true);
  return Accumulation([set] { set(false); });
}

void CollectiveAdapter::average_gradients() {
  if (!is_running() || apart_) return;
  flat_.check();
  end_exchange();
}

std::uint64_t CollectiveAdapter::step_under_way() const {
  return static_cast<std::uint64_t>(std::llround(clock_)) + 1;
}

// The backward pass has made the exchange; a step without one sends zeros, so that no node waits.
// If the exchange failed, the next group repeats it, unless one of its members has the result.
void CollectiveAdapter::end_exchange() {
  if (!reducer_->done()) reducer_->contribute(/*joined=*/false);
  auto result = reducer_->end_step();
  exchanged_ = true;
  while (true) {
    report_.waited += result->waited;
    const std::uint64_t bytes = group_session_->group().size() > 1 ? result->bytes : 0;
    report_.bytes += bytes;
    averaged_bytes_ += bytes;
    const bool stops = config_.collective.on_lost_rank == OnLostRank::stop;
    if (!result->error && (stops || group_session_->complete(step_under_way()))) break;
    const std::vector<bool> used = reducer_->used();
    if (!move_on(result->error ? &*result->error : nullptr)) return;
    const bool nothing = std::ranges::find(used, true) == used.end();
    if (nothing) {
      reducer_->contribute(/*joined=*/false);
    } else {
      reducer_->repeat(used);
    }
    result = reducer_->end_step();
  }
  take(*result->tally);
}

bool CollectiveAdapter::move_on(const CollectiveError* error) {
  if (error && (config_.collective.on_lost_rank == OnLostRank::stop || !may_go_on(*error)))
    give_up(*error);
  std::string lost = group_session_->suspect();
  if (lost.empty()) lost = error ? "a node is lost" : "the others continue without this node";
  drop_group();
  if (config_.collective.on_lost_rank == OnLostRank::gossip) {
    go_apart(lost);
    return false;
  }
  log(LogLevel::warn, "collective", lost + (error ? ": the others form the next group" : ""));
  return regroup() && !taken_over_;
}

// Equal weights are what this back end promises: a difference never heals, and spoils the model.
void CollectiveAdapter::require_equal_weights(const collective::StepTally& tally) {
  std::string names;
  for (const std::size_t rank : collective::differing_ranks(tally.weights))
    names += (names.empty() ? "'" : ", '") + group_session_->name_of(static_cast<int>(rank)) + "'";
  if (names.empty()) return;
  group_session_->group().leave(
      collective::leave_limit);  // a node may still be reading the checksums
  end("because the weights of " + names +
      " differ from those of the other nodes, and must be equal after each step; look for code "
      "that changes weights, gradients or the optimizer on some nodes only, and for processors of "
      "different types");
}

void CollectiveAdapter::take(const collective::StepTally& tally) {
  require_equal_weights(tally);
  const int size = group_session_->group().size();
  if (tally.joined > 0) uneven_ = true;
  if (tally.first_stopping >= 0 && !std::exchange(stopping_, true))
    log(LogLevel::info, "collective",
        "'" + group_session_->name_of(tally.first_stopping) +
            "' was told to stop: all nodes end after the next step");
  if (tally.first_at_work >= 0) last_at_work_ = tally.first_at_work;
  if (size > 1) report_.outcome = Outcome::averaged;
  report_.participants = static_cast<unsigned>(size - tally.joined);
  tally_ = tally;
}

StepReport CollectiveAdapter::step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) {
  const bool ran = is_running();
  update_send(loss);
  if (phase_ == Phase::running && !apart_ && !taken_over_) compare(&optimizer);
  // The new state includes this step. A node that was told to stop meanwhile ends before it.
  const bool ended = ran && phase_ == Phase::left;
  if (!taken_over_ && !ended) optimizer.step();
  report_.made = !ended;
  return update_wait(loss);
}

void CollectiveAdapter::update_send(const torch::Tensor& loss) {
  if (!is_running()) return;
  flat_.check();
  if (!apart_ && !exchanged_) end_exchange();
  if (apart_) gossip_->update_send(value_of(loss));
}

StepReport CollectiveAdapter::update_wait(const torch::Tensor& loss) {
  // Those that call step() compare their optimizers; in halves it is not known.
  if (is_running() && !apart_ && !taken_over_) compare(nullptr);
  if (is_running()) {
    if (apart_) {
      report_ = gossip_->update_wait(value_of(loss));
      clock_ = report_.clock;
      come_together();
    } else if (!std::exchange(taken_over_, false)) {
      awaits_optimizer_ = false;  // it comes in step() only
      clock_ = clock_after_publish(clock_);
      between_steps();
    }
    tell_status(loss);
  }
  exchanged_ = false;
  report_.clock = clock_;
  return std::exchange(report_, {});
}

// All members come here after the same exchange, with the same tally.
void CollectiveAdapter::between_steps() {
  collective::ProcessGroup& group = group_session_->group();
  place_ = group_session_->place();
  if (std::exchange(resync_, false) && shared_state_.defined()) {
    try {
      collective::Operations(group).broadcast({"the state of the program", shared_state_}, source_);
    } catch (const CollectiveError& error) {
      if (!may_go_on(error)) give_up(error);
      return;  // the next exchange will find it
    }
  }
  if (!tally_ || config_.collective.on_lost_rank == OnLostRank::stop) return;
  const auto notes = std::exchange(tally_, std::nullopt)->notes;
  const std::uint32_t formed = notes.front();
  if (formed != 0 && std::ranges::all_of(notes, [&](auto note) { return note == formed; }))
    return admit_newcomers();
  reducer_->set_note(static_cast<std::uint32_t>(group_session_->former().formed() & group_mask));
}

// All members have formed the next group beside this one.
void CollectiveAdapter::admit_newcomers() {
  auto formed = group_session_->former().take(Duration::zero(), [] { return false; });
  reducer_.reset();
  // Lets the others receive the rest of the last exchange.
  group_session_->group().leave(collective::leave_limit);
  drop_group();
  try {
    if (!formed)
      throw CollectiveError(collective::Failure::lost, "taking in a node", "", "it has gone");
    enter(std::move(*formed));
  } catch (const CollectiveError& error) {
    if (!may_go_on(error)) give_up(error);
    drop_group();
    if (config_.collective.on_lost_rank == OnLostRank::gossip) return go_apart("");
    if (!regroup()) return;
  }
  taken_over_ = false;
  place_ = group_session_->place();
}

bool CollectiveAdapter::should_stop(bool wanted) {
  const bool all_stop = config_.collective.on_lost_rank == OnLostRank::stop;
  if (phase_ != Phase::running || !all_stop) return wanted;
  if (wanted) reducer_->set_stopping();
  return stopping_;
}

void CollectiveAdapter::tell_status(const torch::Tensor& loss) {
  const TimePoint now = SteadyClock::now();
  if (now - told_ < between_notes || phase_ != Phase::running) return;
  told_ = now;
  StatusNotes& notes = endpoint().local().notes;
  notes.set("clock", nlohmann::json(clock_).dump());
  notes.set("gradient_bytes", std::to_string(averaged_bytes_));
  if (loss.defined() && loss.numel() == 1) {
    const double value = loss.item<double>();
    if (std::isfinite(value)) notes.set("loss", nlohmann::json(value).dump());
  }
}

ResumeState CollectiveAdapter::resume_state() const {
  ResumeState state{clock_, {}};
  if (gossip_) {
    const GossipState descent = gossip_->resume_state();
    state.own = {{"lineage", descent.lineage}, {"incarnation", descent.incarnation}};
  }
  return state;
}

void CollectiveAdapter::restore(const ResumeState& state) {
  clock_ = state.clock;
  const auto lineage = state.own.find("lineage");
  const auto incarnation = state.own.find("incarnation");
  if (gossip_ && lineage != state.own.end() && incarnation != state.own.end())
    gossip_->restore({clock_, lineage->second, incarnation->second});
}

std::unique_ptr<Adapter> make_collective(const Config& config, torch::nn::Module& model) {
  return std::make_unique<CollectiveAdapter>(config, model);
}

}  // namespace dpwa
