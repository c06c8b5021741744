#include "dpwa/collective/collective_node.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "dpwa/base/random.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/collective/agreement.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/text.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/group/group_endpoint.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"

namespace dpwa::collective {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto between_notes = std::chrono::milliseconds(100);

}  // namespace

bool may_train_apart(const CollectiveConfig& config) {
  return config.on_lost_rank == OnLostRank::gossip ||
         (config.on_lost_rank == OnLostRank::shrink && config.minority == Minority::gossip);
}

CollectiveNode::CollectiveNode(const Config& config, const std::string& engine, Replica& replica,
                               Parameters* parameters)
    : config_(config), replica_(replica), transfer_(replica) {
  if (parameters != nullptr) {
    Config patient = config_;
    patient.gossip.start_wait =
        std::min<Duration>(config_.gossip.start_wait, config_.collective.start_wait / 2);
    gossip_ = std::make_unique<Gossip>(patient, *parameters);
  }
  starter_.emplace(config_, engine, replica_, transfer_, steps_, gossip_.get());
}

CollectiveNode::~CollectiveNode() {
  leave();
}

Endpoint& CollectiveNode::endpoint() {
  return gossip_ ? gossip_->node().endpoint() : *endpoint_;
}

void CollectiveNode::start(Connector connector, const Loss& loss) {
  const TimePoint until = SteadyClock::now() + config_.collective.start_wait;
  if (gossip_) {
    gossip_->serve_also(std::make_unique<group::GroupHandler>(inbox_));
    gossip_->start();
    gossip_->rest();
  } else {
    endpoint_ = group::group_endpoint(config_, inbox_);
    endpoint_->start(config_.collective.start_wait);
  }
  session_ = std::make_unique<GroupSession>(config_, endpoint().local(), inbox_, starter_->terms(),
                                            std::move(connector));
  phase_ = Phase::together;
  try {
    guarded([&] { starter_->first(*session_, until); });
  } catch (...) {
    leave();
    throw;
  }
  steps_.end_step(transfer_.clock());
  endpoint().local().state = wire::NodeState::ready;
  tell_status(loss);
}

template <class Work>
void CollectiveNode::guarded(const Work& work) {
  try {
    work();
  } catch (const RunEnds& ends) {
    const std::string text =
        "node '" + config_.self + "' ends at " + at_clock(transfer_.clock()) + ", " + ends.what();
    leave();
    throw std::runtime_error(text);
  }
}

void CollectiveNode::move_to(Phase phase) {
  if (phase == Phase::left) return leave();
  phase_ = phase;
}

void CollectiveNode::break_off() {
  if (gossip_) gossip_->break_off();
  starter_->break_off();
}

void CollectiveNode::show(const std::string& name, double value) {
  if (is_running()) endpoint().local().shown.set(name, value);
}

void CollectiveNode::reload(const Config& fresh) {
  reload_log(fresh, Backend::collective);
  if (phase_ != Phase::made) endpoint().reload_security();
}

void CollectiveNode::average_gradients() {
  if (phase_ != Phase::together) return;
  replica_.check();
  guarded([this] { end_exchange(); });
}

std::uint64_t CollectiveNode::step_under_way() const {
  return static_cast<std::uint64_t>(std::llround(transfer_.clock())) + 1;
}

StepResult CollectiveNode::exchanged(StepResult result) {
  steps_.exchanged(result);
  return result;
}

// If the exchange failed, the next group repeats it, unless one of its members has the result. One
// whose result did not count sends zeros, so that no gradient is in two sums.
void CollectiveNode::end_exchange() {
  const StepScope counted(endpoint().local().steps, StepClock::Part::publish, SteadyClock::now);
  StepResult result = exchanged(replica_.exchange());
  while (result.error || !(stops_on_loss() || session_->complete(step_under_way()))) {
    if (!move_on(result.error ? &*result.error : nullptr)) return;
    result = exchanged(steps_.has_spent_gradients() ? replica_.exchange() : replica_.repeat());
  }
  take(*result.tally);
}

bool CollectiveNode::move_on(const CollectiveError* error) {
  if (error != nullptr) give_up_if_it_must(*error);
  std::string lost = session_->suspect();
  if (lost.empty() && error == nullptr) lost = "the others continue without this node";
  starter_->drop(*session_);
  if (config_.collective.on_lost_rank == OnLostRank::gossip) {
    move_to(starter_->go_apart(*session_, lost));
    return false;
  }
  if (error == nullptr) {
    log(LogLevel::warn, "collective", lost);
    move_to(starter_->next(*session_));
  } else {
    move_to(starter_->next(*session_, lost));
  }
  return makes_step();
}

void CollectiveNode::give_up_if_it_must(const CollectiveError& error) {
  if (stops_on_loss() || !may_go_on(error)) starter_->give_up(*session_, error);
}

// Equal weights are what this back end promises: a difference never heals, and spoils the model.
void CollectiveNode::require_equal_weights(const StepTally& tally) {
  std::string names;
  for (const std::size_t rank : differing_ranks(tally.weights))
    names += (names.empty() ? "'" : ", '") + session_->name_of(static_cast<int>(rank)) + "'";
  if (names.empty()) return;
  session_->group().leave(leave_limit);  // a node may still be reading the checksums
  throw RunEnds(
      "because the weights of " + names +
      " differ from those of the other nodes, and must be equal after each step; look for code "
      "that changes weights, gradients or the optimizer on some nodes only, and for processors of "
      "different types");
}

void CollectiveNode::take(const StepTally& tally) {
  require_equal_weights(tally);
  if (steps_.take(tally))
    log(LogLevel::info, "collective",
        "'" + session_->name_of(tally.first_stopping) +
            "' was told to stop: all nodes end after the next step");
}

StepReport CollectiveNode::make_step(OptimizerState& optimizer, const std::function<void()>& update,
                                     const Loss& loss, bool skips) {
  const bool ran = is_running();
  send(loss, /*publishes=*/!skips);
  if (makes_step()) compare(&optimizer);
  // The new state includes this step. A node that was told to stop meanwhile ends before it.
  const bool ended = ran && phase_ == Phase::left;
  if (!steps_.is_taken_over() && !ended && !skips) update();
  steps_.report().made = !ended;
  return update_wait(loss);
}

void CollectiveNode::send(const Loss& loss, bool publishes) {
  if (!is_running()) return;
  replica_.check();
  if (phase_ == Phase::together && steps_.is_open()) guarded([this] { end_exchange(); });
  if (phase_ == Phase::apart && publishes) gossip_->update_send(loss());
}

StepReport CollectiveNode::update_wait(const Loss& loss) {
  // Those that call step() compare their optimizers; in halves it is not known.
  if (makes_step()) compare(nullptr);
  if (phase_ == Phase::apart) {
    steps_.report() = gossip_->update_wait(loss());
    transfer_.set_clock(steps_.report().clock);
    guarded([this] { move_to(starter_->come_together(*session_)); });
  } else if (makes_step()) {
    StepClock& clock = endpoint().local().steps;
    clock.enter(StepClock::Part::blend, SteadyClock::now());
    transfer_.made_step(clock_after_publish(transfer_.clock()));
    guarded([this] { between_steps(); });
    clock.end_step(steps_.report(), SteadyClock::now());
  }
  tell_status(loss);
  return steps_.end_step(transfer_.clock());
}

void CollectiveNode::compare(OptimizerState* optimizer) {
  if (!transfer_.is_to_compare()) return;
  StepGroup& group = session_->group();
  session_->watch().begin_wait("comparing optimizers");
  try {
    transfer_.compare(group, optimizer);
    // All have found their states equal, those that join too: from now on these are members.
    const std::uint64_t step = step_under_way();
    session_->note_state(step, derive_seed(group.epoch(), {step}));
  } catch (const CollectiveError& error) {
    // At the start all end with the same error, and a node may still be reading it.
    if (transfer_.plan().fresh && !may_go_on(error)) group.leave(leave_limit);
    guarded([&] { give_up_if_it_must(error); });
    // The next exchange will find that a node is lost. This node cannot step without the result,
    // and takes over the state later.
    if (transfer_.is_broken()) steps_.take_over();
  }
  session_->watch().end_wait();
}

// All members come here after the same exchange, with the same tally.
void CollectiveNode::between_steps() {
  starter_->take_place(*session_);
  try {
    transfer_.hand_over_program(session_->group());
  } catch (const CollectiveError& error) {
    if (!may_go_on(error)) starter_->give_up(*session_, error);
    return;  // the next exchange will find it
  }
  if (stops_on_loss()) return;
  if (steps_.all_have_next_group()) return move_to(starter_->grow(*session_));
  replica_.set_note(note_of_group(session_->former().formed()));
}

bool CollectiveNode::should_stop(bool wanted) {
  if (!is_running() || !stops_on_loss()) return wanted;
  if (wanted) replica_.set_stopping();
  return steps_.all_stop();
}

void CollectiveNode::tell_status(const Loss& loss) {
  const TimePoint now = SteadyClock::now();
  if (!is_running() || now - told_ < between_notes) return;
  told_ = now;
  StatusNotes& notes = endpoint().local().notes;
  notes.set("clock", nlohmann::json(transfer_.clock()).dump());
  notes.set("gradient_bytes", std::to_string(steps_.averaged_bytes()));
  // A loss on a device is told with the next notes: it is there by then, and nothing waits for it.
  auto before = std::exchange(loss_, loss());
  const double value = replica_.is_on_host() || !before ? loss_() : before();
  if (std::isfinite(value)) notes.set("loss", nlohmann::json(value).dump());
}

FinishReport CollectiveNode::finish() {
  if (is_running()) replica_.check();
  // The program has left out the step after a backward pass: the others wait for its gradients.
  if (phase_ == Phase::together && steps_.is_open() && replica_.has_begun())
    guarded([this] { end_exchange(); });
  if (!steps_.all_stop()) guarded([this] { run_out(); });  // else all are here, with one model
  steps_.end_step(transfer_.clock());                      // those exchanges were no steps
  if (phase_ == Phase::apart) {
    finished_ = gossip_->finish();
  } else if (phase_ == Phase::together) {
    const std::size_t size = session_->place().size;
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
void CollectiveNode::run_out() {
  while (phase_ == Phase::together) {
    const bool told_to_stop = stop_signal::received() != 0;
    if (told_to_stop && !stops_on_loss()) return leave();
    if (told_to_stop) replica_.set_stopping();
    const StepResult result = exchanged(replica_.exchange_joined());
    std::optional<CollectiveError> error = result.error;
    if (!error) {
      const StepTally& tally = *result.tally;
      require_equal_weights(tally);
      if (tally.first_stopping >= 0) {
        steps_.take(tally);
        if (told_to_stop) return leave();
        const std::string who = session_->name_of(tally.first_stopping);
        leave();
        throw std::runtime_error("node '" + config_.self + "' ends because '" + who +
                                 "' was told to stop");
      }
      steps_.take(tally);
      if (tally.joined < session_->group().size()) {
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
    starter_->drop(*session_);
    move_to(starter_->next(*session_));
  }
}

void CollectiveNode::take_final_model() {
  StepGroup& group = session_->group();
  session_->watch().begin_wait("the model of the last node at work");
  if (const auto rank = steps_.last_at_work()) {
    // Where the group fails, some may have it, and others not: these take all from another.
    if (*rank != group.rank()) transfer_.takes_all();
    replica_.broadcast_model(group, *rank);
  }
  if (!stops_on_loss()) barrier(group);
  session_->watch().end_wait();
  session_->note_left();
  replica_.drop();
  group.leave(leave_limit);
}

void CollectiveNode::leave() {
  replica_.drop();
  if (session_) {
    const bool together = session_->together();
    if (stops_on_loss() || (together && session_->group().aborted())) {
      session_->note_left();
    } else {
      session_->leave();
    }
    // All leave after the same step, and one may still be receiving from this node.
    if (steps_.all_stop() && session_->together() && !session_->group().broken())
      session_->group().leave(leave_limit);
    session_.reset();
  }
  if (gossip_) gossip_->leave();
  if (endpoint_) {
    endpoint_->local().state = wire::NodeState::finished;
    endpoint_->stop();
  }
  if (is_running()) phase_ = Phase::left;
}

ResumeState CollectiveNode::resume_state() const {
  ResumeState state{transfer_.clock(), {}};
  if (gossip_) {
    const GossipState descent = gossip_->resume_state();
    state.own = {{"lineage", descent.lineage}, {"incarnation", descent.incarnation}};
  }
  return state;
}

void CollectiveNode::restore(const ResumeState& state) {
  transfer_.set_clock(state.clock);
  const auto lineage = state.own.find("lineage");
  const auto incarnation = state.own.find("incarnation");
  if (gossip_ && lineage != state.own.end() && incarnation != state.own.end())
    gossip_->restore({state.clock, lineage->second, incarnation->second});
}

}  // namespace dpwa::collective
