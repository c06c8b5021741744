#include "dpwa/collective/state_transfer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "dpwa/base/random.h"
#include "dpwa/collective/agreement.h"
#include "dpwa/log/log.h"

namespace dpwa::collective {

MemberState StateTransfer::own_state(bool newcomer) const {
  GroupState state = GroupState::none;
  if (!newcomer && holds_ == Holds::all) state = GroupState::member;
  if (!newcomer && holds_ == Holds::apart) state = GroupState::apart;
  return {std::llround(clock_), state};
}

void StateTransfer::go_apart() {
  if (holds_ != Holds::nothing) holds_ = Holds::apart;
}

void StateTransfer::enter(const StepGroup& group, const SyncPlan& plan) {
  plan_ = plan;
  if (plan.behind[static_cast<std::size_t>(group.rank())]) holds_ = Holds::nothing;
  if (plan.averages()) replica_.average_model(group, plan.averaged);
  // Frozen parameters and counts too; where nobody is behind all have the same already, but for the
  // first weights of a run.
  if (plan.any_behind() || plan.fresh) replica_.broadcast_model(group, plan.source);
  if (plan.newcomers) broadcast_program(group);
  next_ = Next::optimizers;
}

void StateTransfer::complete(int rank) {
  clock_ = static_cast<double>(plan_.clock);
  holds_ = plan_.takes_optimizer(rank) ? Holds::all_but_optimizer : Holds::all;
}

void StateTransfer::compare(const StepGroup& group, OptimizerState* own) {
  next_ = Next::program;
  const bool takes = holds_ == Holds::all_but_optimizer;
  if (takes) holds_ = Holds::nothing;
  Signature words;
  if (own) words = own->words();
  const auto [owner, fits] = compare_words(group, own ? &words : nullptr);
  if (plan_.hands_over_optimizer() && owner) {
    const std::string state = broadcast_state(group, own, *owner);
    if (takes && own && fits && group.rank() != *owner) own->load(state);
  }
  if (own) words.entries.push_back({"state", own->state_words()});
  compare_words(group, own ? &words : nullptr);
  holds_ = Holds::all;
}

// A new node with a different optimizer ends; the others notice it in the next exchange. At the
// start of a run all nodes end.
StateTransfer::Comparison StateTransfer::compare_words(const StepGroup& group,
                                                       const Signature* own) const {
  constexpr std::int64_t none = 0;
  const auto hash = own ? static_cast<std::int64_t>(hash_of(own->text()) | 1U) : none;
  Signature question;
  question.operation = "compare optimizers";
  const auto hashes = agree(group, question, hash);
  Comparison result;
  result.owner = owner_of_optimizer(hashes, plan_.source, plan_.behind);
  const std::int64_t wanted = result.owner ? hashes[static_cast<std::size_t>(*result.owner)] : none;
  result.fits = hash == none || hash == wanted;
  const bool same = std::ranges::all_of(
      hashes, [&](std::int64_t other) { return other == none || other == wanted; });
  if (same) return result;
  try {
    agree(group, own ? *own : Signature{});
  } catch (const CollectiveError& error) {
    if (plan_.fresh || !result.fits || error.failure() != Failure::mismatch) throw;
    log(LogLevel::warn, "collective",
        "a node has another optimizer, and leaves: " + error.reason());
  }
  return result;
}

void StateTransfer::hand_over_program(const StepGroup& group) {
  if (next_ != Next::program) return;
  next_ = Next::nothing;
  if (!plan_.fresh) broadcast_program(group);
}

void StateTransfer::broadcast_program(const StepGroup& group) const {
  if (!form_.empty()) broadcast(group, "the state of the program", form_, program_, plan_.source);
}

std::string broadcast_state(const StepGroup& group, const OptimizerState* own, int root) {
  std::string state;
  if (group.rank() == root) state = own->save();
  auto size = static_cast<std::int64_t>(state.size());
  broadcast(group, "the size of the optimizer's state", "int64 [1]",
            std::as_writable_bytes(std::span(&size, 1)), root);
  state.resize(static_cast<std::size_t>(size));
  broadcast(group, "the state of the optimizer", "uint8 [" + std::to_string(size) + "]",
            std::as_writable_bytes(std::span(state)), root);
  return state;
}

}  // namespace dpwa::collective
