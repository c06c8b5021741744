#include "dpwa/collective/starter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/base/stop_signal.h"
#include "dpwa/collective/agreement.h"
#include "dpwa/collective/terms.h"
#include "dpwa/config/keys.h"
#include "dpwa/config/text.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"

namespace dpwa::collective {
namespace {

using Steady = std::chrono::steady_clock;

// For the last notes of this node, before it ends.
constexpr auto for_the_others_to_see = std::chrono::seconds(2);
constexpr auto after_a_minority =
    "; start the nodes that have ended again, or set collective.minority: gossip, by which such a "
    "part trains on";

}  // namespace

std::string at_clock(double clock) {
  return "clock " + std::to_string(std::llround(clock));
}

Starter::Starter(const Config& config, const std::string& engine, Replica& replica,
                 StateTransfer& transfer, StepRecord& steps, Gossip* gossip)
    : config_(config),
      replica_(replica),
      transfer_(transfer),
      steps_(steps),
      gossip_(gossip),
      settings_(file_terms(config, engine)),
      place_(place_in_file(config)) {
  std::ranges::copy(config::shared_settings(config, "collective"), std::back_inserter(settings_));
}

Settings Starter::terms() const {
  Settings terms = settings_;
  terms.push_back(model_term(replica_.tensors()));
  return terms;
}

Signature Starter::question() const {
  Signature question;
  question.operation = "train a model";
  for (const auto& [name, value] : settings_) question.entries.push_back({name, value, true});
  std::ranges::copy(replica_.tensors(), std::back_inserter(question.entries));
  return question;
}

// In a wait. Logs for which nodes this one waits.
bool Starter::told_to_stop(const GroupFormer& former, WaitReasons& reasons) const {
  const std::string problem = former.problem();
  if (reasons.due(problem, Steady::now()))
    log(LogLevel::info, "collective", "waiting for the others: " + problem);
  return broken_off_ || stop_signal::received() != 0;
}

void Starter::first(GroupSession& session, TimePoint until) {
  GroupFormer& former = session.former();
  WaitReasons reasons(Steady::now());
  while (true) {
    former.seek();
    auto formed = former.take(until - Steady::now(), [&] {
      return told_to_stop(former, reasons) || !former.stranger().empty() ||
             !former.refusal().empty();
    });
    if (!formed) {
      std::string problem = former.problem();
      if (stop_signal::received() != 0) problem = "this node was told to stop";
      if (const std::string stranger = former.stranger(); !stranger.empty()) {
        problem = stranger;
        std::this_thread::sleep_for(for_the_others_to_see);
      }
      if (const std::string refusal = former.refusal(); !refusal.empty()) problem = refusal;
      throw std::runtime_error(not_together(problem));
    }
    try {
      enter(session, std::move(*formed));
      return take_place(session);
    } catch (const CollectiveError& error) {
      // All have the same error, and a node may still be reading it.
      if (!may_go_on(error)) session.group().leave(leave_limit);
      // A node that died during the comparison of models comes again, or is missing next time.
      if (!may_go_on(error) || Steady::now() >= until) give_up(session, error);
      drop(session);
    }
  }
}

Phase Starter::next(GroupSession& session, std::optional<std::string> why) {
  GroupFormer& former = session.former();
  WaitReasons reasons(Steady::now());
  // The news of who is gone may come after the failure that follows from it.
  const auto say = [&](const std::string& unknown) {
    if (why && why->empty()) why = session.gone();
    if (why && why->empty()) why = unknown;
    if (!why || why->empty()) return;
    log_event(EventKind::lost, LogLevel::warn, "collective",
              *why + ": the others form the next group");
    why.reset();
  };
  while (true) {
    former.seek();
    auto formed = former.take(config_.collective.start_wait, [&] {
      say("");
      return told_to_stop(former, reasons) || !former.minority().empty();
    });
    say("a node is gone");
    if (!formed && stop_signal::received() != 0) {
      log(LogLevel::warn, "collective", "told to stop while the nodes form their next group");
      return Phase::left;
    }
    if (!formed) {
      const std::string why = former.minority();
      if (why.empty()) throw RunEnds("no next group has formed: " + former.problem());
      if (config_.collective.minority == Minority::stop) throw RunEnds(why + after_a_minority);
      return go_apart(session, why);
    }
    try {
      enter(session, std::move(*formed));
      return Phase::together;
    } catch (const CollectiveError& error) {
      if (!may_go_on(error)) give_up(session, error);
      drop(session);
    }
  }
}

Phase Starter::grow(GroupSession& session) {
  auto formed = session.former().take(Duration::zero(), [] { return false; });
  replica_.drop();
  // Lets the others receive the rest of the last exchange.
  session.group().leave(leave_limit);
  drop(session);
  Phase phase = Phase::together;
  try {
    if (!formed) throw CollectiveError(Failure::lost, "taking in a node", "", "it has gone");
    enter(session, std::move(*formed));
  } catch (const CollectiveError& error) {
    if (!may_go_on(error)) give_up(session, error);
    drop(session);
    if (config_.collective.on_lost_rank == OnLostRank::gossip) return go_apart(session, "");
    phase = next(session);
  }
  if (phase == Phase::together) take_place(session);
  return phase;
}

Phase Starter::go_apart(GroupSession& session, const std::string& why) {
  log_event(EventKind::failed_over, LogLevel::warn, "collective",
            (why.empty() ? "a node is gone" : why) +
                ": training continues by gossip averaging from " + at_clock(transfer_.clock()));
  warned_ = session.former().minority();
  unnamed_ = why.empty();
  transfer_.go_apart();
  session.note_apart(true);
  session.former().seek();
  gossip_->resume(transfer_.clock());
  return Phase::apart;
}

Phase Starter::come_together(GroupSession& session) {
  GroupFormer& former = session.former();
  const std::string minority = former.minority();
  if (!minority.empty() && config_.collective.minority == Minority::stop)
    throw RunEnds(minority + after_a_minority);
  if (minority != warned_ && !minority.empty()) {
    log(LogLevel::warn, "collective", minority + ": training continues by gossip averaging");
    warned_ = minority;
  }
  if (const std::string who = unnamed_ ? session.gone() : ""; !who.empty()) {
    log(LogLevel::info, "collective", who);
    unnamed_ = false;
  }
  auto formed = former.take(Duration::zero(), [] { return false; });
  if (!formed) return Phase::apart;
  gossip_->rest();
  try {
    enter(session, std::move(*formed));
    take_place(session);
    return Phase::together;
  } catch (const CollectiveError& error) {
    if (!may_go_on(error)) give_up(session, error);
    drop(session);
    return go_apart(session, "");
  }
}

void Starter::drop(GroupSession& session) {
  replica_.drop();
  session.drop();
}

// All members compare their models. Then those that are behind take over the state of a member that
// is not.
void Starter::enter(GroupSession& session, GroupFormer::Formed formed) {
  const bool newcomer = formed.newcomer;
  session.take_up(std::move(formed));
  const StepGroup& group = session.group();
  RankWatch& watch = session.watch();
  watch.begin_wait("comparing models");
  std::vector<MemberState> states;
  for (const std::int64_t number :
       agree(group, question(), members::packed(transfer_.own_state(newcomer))))
    states.push_back(members::unpacked(number));
  const SyncPlan plan = members::plan_sync(states);
  transfer_.enter(group, plan);
  if (gossip_ != nullptr) share_lineage(group, plan.source);
  replica_.enter(group, {[&watch](const std::string& what) { watch.begin_wait(what); },
                         [&watch] { watch.end_wait(); }});
  steps_.enter_group();
  watch.end_wait();

  const double before = transfer_.clock();
  transfer_.complete(group);
  const std::string now = at_clock(transfer_.clock());
  const bool behind = plan.behind[static_cast<std::size_t>(group.rank())];
  const std::string source = "'" + session.name_of(plan.source) + "'";
  if (plan.averages()) {
    log_event(
        EventKind::taken_over, LogLevel::info, "collective",
        "took the mean of the models that were trained apart, with the optimizer's state of " +
            source + ", at " + now);
  } else if (behind && before != transfer_.clock()) {
    log_event(EventKind::taken_over, LogLevel::info, "collective",
              "took over the state of " + source + " at " + now);
  }
  session.begin_at(static_cast<std::uint64_t>(plan.clock));
  session.note_apart(false);
  if (behind) steps_.take_over();
  // A member that is a step behind makes, at its old place, the step that the others repeat.
  if (newcomer) take_place(session);
  if (const std::string missing = session.missed(); !missing.empty())
    log_event(EventKind::left_out, LogLevel::warn, "collective",
              "the group continues without " + missing);
  log_event(EventKind::view, LogLevel::info, "collective",
            "rank " + std::to_string(group.rank()) + " of " + std::to_string(group.size()) + " (" +
                config::joined(group.names()) + "), view " + std::to_string(group.epoch()) +
                ", engine " + group.engine() +
                (group.setting().empty() ? "" : ", " + group.setting()) + ", at " + now);
}

void Starter::share_lineage(const StepGroup& group, int source) {
  std::uint64_t lineage = gossip_->resume_state().lineage;
  broadcast(group, "the descent of the weights", "int64 [1]",
            std::as_writable_bytes(std::span(&lineage, 1)), source);
  gossip_->set_lineage(lineage);
}

void Starter::give_up(GroupSession& session, const CollectiveError& error) const {
  const bool lost = may_go_on(error);
  const std::string who = lost ? session.lost_node() : "";
  const std::string why = who.empty() ? error.reason() : who;
  const CollectiveEngine engine = config_.collective.engine;
  const bool could_go_on = lost && config_.collective.on_lost_rank == OnLostRank::stop &&
                           engine != CollectiveEngine::mpi && engine != CollectiveEngine::nccl;
  throw RunEnds("because backend collective needs every node: " + why +
                (could_go_on ? "; start all nodes again, from their checkpoints if they have some; "
                               "collective.on_lost_rank: shrink goes on without a lost node"
                             : ""));
}

}  // namespace dpwa::collective
