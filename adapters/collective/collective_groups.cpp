// CollectiveAdapter: how it enters groups, compares what must be equal in them, and trains without
// one.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

#include "adapters/collective/collective_adapter.h"
#include "adapters/collective/engine/agreement.h"
#include "adapters/collective/engine/operations.h"
#include "adapters/collective/gathering.h"
#include "adapters/collective/model_terms.h"
#include "adapters/collective/state_sync.h"
#include "adapters/common/module_tensors.h"
#include "adapters/common/training_state.h"
#include "dpwa/base/random.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using Steady = std::chrono::steady_clock;
using collective::GroupState;

constexpr auto between_words_on_a_wait = std::chrono::seconds(2);
// For the last notes of this node, before it ends.
constexpr auto for_the_others_to_see = std::chrono::seconds(2);

constexpr auto after_a_minority =
    "; start all nodes again from their checkpoints, or set collective.minority: gossip, by which "
    "such a part trains on";

std::string at_clock(double clock) {
  return "clock " + std::to_string(std::llround(clock));
}

}  // namespace

// Logs every few seconds for which nodes this one waits.
void CollectiveAdapter::tell_wait() {
  const TimePoint now = Steady::now();
  if (now - told_wait_ < between_words_on_a_wait) return;
  const bool first = told_wait_ == TimePoint{};
  told_wait_ = now;
  const std::string problem = group_session_->former().problem();
  if (!first && !problem.empty())
    log(LogLevel::info, "collective", "waiting for the others: " + problem);
}

void CollectiveAdapter::form_first_group(TimePoint until) {
  collective::GroupFormer& former = group_session_->former();
  while (true) {
    former.seek();
    auto formed = former.take(until - Steady::now(), [&] {
      tell_wait();
      return stop_signal::received() != 0 || !former.stranger().empty();
    });
    if (!formed) {
      std::string problem = former.problem();
      if (stop_signal::received() != 0) problem = "this node was told to stop";
      if (const std::string stranger = former.stranger(); !stranger.empty()) {
        problem = stranger;
        std::this_thread::sleep_for(for_the_others_to_see);
      }
      leave();
      throw std::runtime_error(collective::not_together(problem));
    }
    try {
      enter(std::move(*formed));
      return;
    } catch (const CollectiveError& error) {
      // All have the same error, and a node may still be reading it.
      if (!may_go_on(error)) group_session_->group().leave(collective::leave_limit);
      // A node that died during the comparison of models comes again, or is missing next time.
      if (!may_go_on(error) || Steady::now() >= until) give_up(error);
      drop_group();
    }
  }
}

// All members compare their models. Then those that are behind take over the state of a member that
// is not.
void CollectiveAdapter::enter(collective::GroupFormer::Formed formed) {
  const bool newcomer = formed.newcomer;
  GroupState group_state = apart_ ? GroupState::apart : GroupState::member;
  if (!has_state_ || awaits_optimizer_ || formed.newcomer) group_state = GroupState::none;
  group_session_->take_up(std::move(formed));
  collective::ProcessGroup& group = group_session_->group();
  group_session_->watch().begin_wait("comparing models");
  collective::Signature signature;
  signature.operation = "train a model";
  for (const auto& [name, value] : terms_) signature.entries.push_back({name, value, true});
  for (auto& tensor : collective::tensors_of(model_))
    signature.entries.push_back(std::move(tensor));
  std::vector<collective::MemberState> members;
  for (const std::int64_t number :
       collective::agree(group, signature, collective::packed({std::llround(clock_), group_state})))
    members.push_back(collective::unpacked(number));

  const collective::SyncPlan plan = collective::plan_sync(members);
  const bool behind = plan.behind[static_cast<std::size_t>(group.rank())];
  if (behind) has_state_ = false;  // until it is whole
  collective::sync_model(group, plan, flat_);
  if (plan.newcomers && shared_state_.defined())
    collective::Operations(group).broadcast({"the state of the program", shared_state_},
                                            plan.source);
  // In the next step of all members, because the program sets learning rates before a step.
  // At the start of a run also for checkpoints with the same clock: their nodes may have trained
  // apart.
  const bool resumed = plan.fresh && plan.clock > 0;
  hands_over_optimizer_ = plan.any_behind() || resumed;
  awaits_optimizer_ = behind || (resumed && group.rank() != plan.source);
  behind_ = plan.behind;
  compared_ = false;
  fresh_ = plan.fresh;
  if (gossip_) {
    auto lineage = at::empty({1}, at::kLong);
    lineage.fill_(static_cast<std::int64_t>(gossip_->resume_state().lineage));
    collective::Operations(group).broadcast({"the descent of the weights", lineage}, plan.source);
    gossip_->set_lineage(static_cast<std::uint64_t>(*lineage.const_data_ptr<std::int64_t>()));
  }
  make_reducer();
  group_session_->watch().end_wait();
  if (plan.averages()) {
    log(LogLevel::info, "collective",
        "took the mean of the models that were trained apart, with the optimizer's state of '" +
            group_session_->name_of(plan.source) + "', at " +
            at_clock(static_cast<double>(plan.clock)));
  } else if (behind && clock_ != static_cast<double>(plan.clock)) {
    log(LogLevel::info, "collective",
        "took over the state of '" + group_session_->name_of(plan.source) + "' at " +
            at_clock(static_cast<double>(plan.clock)));
  }
  clock_ = static_cast<double>(plan.clock);
  group_session_->begin_at(static_cast<std::uint64_t>(plan.clock));
  taken_over_ = behind;
  has_state_ = true;
  apart_ = false;
  group_session_->note_apart(false);
  source_ = plan.source;
  resync_ = !plan.fresh;
  // A member that is a step behind makes, at its old place, the step that the others repeat.
  if (newcomer) place_ = group_session_->place();
  tally_.reset();
  std::string names;
  for (int rank = 0; rank < group.size(); ++rank)
    names += (rank == 0 ? "" : ", ") + group_session_->name_of(rank);
  if (const std::string missing = group_session_->missed(); !missing.empty())
    log(LogLevel::warn, "collective", "the group continues without " + missing);
  log(LogLevel::info, "collective",
      "rank " + std::to_string(group.rank()) + " of " + std::to_string(group.size()) + " (" +
          names + "), group " + std::to_string(group.epoch()) + ", engine " + group.engine() +
          ", at " + at_clock(clock_));
}

void CollectiveAdapter::compare(torch::optim::Optimizer* optimizer) {
  if (std::exchange(compared_, true)) return;
  group_session_->watch().begin_wait("comparing optimizers");
  try {
    compare_optimizers(optimizer);
  } catch (const CollectiveError& error) {
    // At the start all end with the same error, and a node may still be reading it.
    if (fresh_ && !may_go_on(error)) group_session_->group().leave(collective::leave_limit);
    if (config_.collective.on_lost_rank == OnLostRank::stop || !may_go_on(error)) give_up(error);
    // The next exchange will find that a node is lost. This node cannot step without the result,
    // and takes over the state later.
    if (awaits_optimizer_) {
      has_state_ = false;
      taken_over_ = true;
    }
  }
  awaits_optimizer_ = false;
  hands_over_optimizer_ = false;
  group_session_->watch().end_wait();
}

// Classes and options first, then the states, which those that are behind have taken over by then.
void CollectiveAdapter::compare_optimizers(torch::optim::Optimizer* optimizer) {
  collective::Signature words;
  if (optimizer) words = collective::optimizer_words(*optimizer);
  const auto [owner, fits] = compare_words(optimizer ? &words : nullptr);
  if (hands_over_optimizer_ && owner) {
    const auto state = collective::broadcast_state(optimizer, group_session_->group(), *owner);
    const bool takes =
        awaits_optimizer_ && optimizer && fits && group_session_->group().rank() != *owner;
    if (takes) load_state(*optimizer, state);
  }
  if (optimizer) words.entries.push_back({"state", collective::state_words(*optimizer)});
  compare_words(optimizer ? &words : nullptr);
  // All have found their states equal, those that join too: from now on these are members.
  const std::uint64_t step = step_under_way();
  group_session_->note_state(step, derive_seed(group_session_->group().epoch(), {step}));
}

// A new node with a different optimizer ends; the others notice it in the next exchange. At the
// start of a run all nodes end. `own`: of the optimizer that makes the step; null on a node that
// has run out of data or steps in halves.
CollectiveAdapter::Comparison CollectiveAdapter::compare_words(const collective::Signature* own) {
  constexpr std::int64_t none = 0;
  collective::ProcessGroup& group = group_session_->group();
  const auto hash = own ? static_cast<std::int64_t>(hash_of(own->text()) | 1U) : none;
  collective::Signature question;
  question.operation = "compare optimizers";
  const auto hashes = collective::agree(group, question, hash);
  Comparison result;
  result.owner = collective::owner_of_optimizer(hashes, source_, behind_);
  const std::int64_t wanted = result.owner ? hashes[static_cast<std::size_t>(*result.owner)] : none;
  result.fits = hash == none || hash == wanted;
  const bool same = std::ranges::all_of(
      hashes, [&](std::int64_t other) { return other == none || other == wanted; });
  if (same) return result;
  try {
    collective::agree(group, own ? *own : collective::Signature{});
  } catch (const CollectiveError& error) {
    if (fresh_ || !result.fits || may_go_on(error)) throw;
    log(LogLevel::warn, "collective",
        "a node has another optimizer, and leaves: " + error.reason());
  }
  return result;
}

void CollectiveAdapter::make_reducer() {
  collective::ReducerOptions options{config_.collective};
  options.begin_wait = [this](const std::string& what) {
    group_session_->watch().begin_wait(what);
  };
  options.end_wait = [this] { group_session_->watch().end_wait(); };
  options.send_checksums = true;
  reducer_ = std::make_unique<collective::GradientReducer>(trained_parameters(model_),
                                                           group_session_->group(), options);
  reducer_->set_shared_buffers(collective::shared_buffers(model_));
  reducer_->set_samples(samples_);
  reducer_->set_accumulating(accumulating_);
}

void CollectiveAdapter::drop_group() {
  reducer_.reset();
  group_session_->drop();
}

bool CollectiveAdapter::may_go_on(const CollectiveError& error) const {
  return error.failure() != collective::Failure::mismatch;
}

bool CollectiveAdapter::regroup() {
  collective::GroupFormer& former = group_session_->former();
  while (true) {
    former.seek();
    auto formed = former.take(config_.collective.start_wait, [&] {
      tell_wait();
      return stop_signal::received() != 0 || !former.minority().empty();
    });
    if (!formed && stop_signal::received() != 0) {
      log(LogLevel::warn, "collective", "told to stop while the nodes form their next group");
      leave();
      return false;
    }
    if (!formed) {
      const std::string why = former.minority();
      if (why.empty()) end("no next group has formed: " + former.problem());
      if (config_.collective.minority == Minority::stop) end(why + after_a_minority);
      go_apart(why);
      return false;
    }
    try {
      enter(std::move(*formed));
      return true;
    } catch (const CollectiveError& error) {
      if (!may_go_on(error)) give_up(error);
      drop_group();
    }
  }
}

void CollectiveAdapter::go_apart(const std::string& why) {
  log(LogLevel::warn, "collective",
      (why.empty() ? "a node is lost" : why) + ": training continues by gossip averaging from " +
          at_clock(clock_));
  warned_ = group_session_->former().minority();
  apart_ = true;
  awaits_optimizer_ = false;  // it trains with its own
  group_session_->note_apart(true);
  group_session_->former().seek();
  gossip_->resume(clock_);
}

void CollectiveAdapter::come_together() {
  collective::GroupFormer& former = group_session_->former();
  const std::string minority = former.minority();
  if (!minority.empty() && config_.collective.minority == Minority::stop)
    end(minority + after_a_minority);
  if (minority != warned_ && !minority.empty()) {
    log(LogLevel::warn, "collective", minority + ": training continues by gossip averaging");
    warned_ = minority;
  }
  auto formed = former.take(Duration::zero(), [] { return false; });
  if (!formed) return;
  gossip_->rest();
  try {
    enter(std::move(*formed));
    place_ = group_session_->place();
  } catch (const CollectiveError& error) {
    if (!may_go_on(error)) give_up(error);
    drop_group();
    go_apart("");
  }
  taken_over_ = false;
}

void CollectiveAdapter::give_up(const CollectiveError& error) {
  const bool lost = error.failure() != collective::Failure::mismatch;
  const std::string who = lost ? group_session_->lost_node() : "";
  const std::string why = who.empty() ? error.reason() : who;
  const CollectiveEngine engine = config_.collective.engine;
  const bool could_go_on = lost && config_.collective.on_lost_rank == OnLostRank::stop &&
                           engine != CollectiveEngine::mpi && engine != CollectiveEngine::nccl;
  end("because backend collective needs every node: " + why +
      (could_go_on ? "; start all nodes again, from their checkpoints if they have some; "
                     "collective.on_lost_rank: shrink goes on without a lost node"
                   : ""));
}

void CollectiveAdapter::end(const std::string& why) {
  const std::string text = "node '" + config_.self + "' ends at " + at_clock(clock_) + ", " + why;
  leave();
  throw std::runtime_error(text);
}

}  // namespace dpwa
