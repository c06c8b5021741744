#include "dpwa/collective/state_transfer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "dpwa/base/random.h"
#include "dpwa/collective/agreement.h"
#include "dpwa/log/log.h"

namespace dpwa::collective {

void StateTransfer::enter(const StepGroup& group, const SyncPlan& plan) {
  held_.enter(plan, group.rank());
  if (plan.averages()) replica_.average_model(group, plan.averaged);
  // Frozen parameters and counts too; where nobody is behind all have the same already, but for the
  // first weights of a run.
  if (plan.any_behind() || plan.fresh) replica_.broadcast_model(group, plan.source);
  if (plan.newcomers) broadcast_program(group);
}

void StateTransfer::compare(const StepGroup& group, OptimizerState* own) {
  const bool takes = held_.begin_comparison();
  Signature words;
  if (own) words = own->words();
  const auto [owner, fits] = compare_words(group, own ? &words : nullptr);
  if (plan().hands_over_optimizer() && owner) {
    const std::string state = broadcast_state(group, own, *owner);
    if (takes && own && fits && group.rank() != *owner) own->load(state);
  }
  if (own) words.entries.push_back({"state", own->state_words()});
  compare_words(group, own ? &words : nullptr);
  held_.compared();
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
  result.owner = members::owner_of_optimizer(hashes, plan().source, plan().behind);
  const std::int64_t wanted = result.owner ? hashes[static_cast<std::size_t>(*result.owner)] : none;
  result.fits = hash == none || hash == wanted;
  const bool same = std::ranges::all_of(
      hashes, [&](std::int64_t other) { return other == none || other == wanted; });
  if (same) return result;
  try {
    agree(group, own ? *own : Signature{});
  } catch (const CollectiveError& error) {
    if (plan().fresh || !result.fits || error.failure() != Failure::mismatch) throw;
    log(LogLevel::warn, "collective",
        "a node has another optimizer, and leaves: " + error.reason());
  }
  return result;
}

void StateTransfer::hand_over_program(const StepGroup& group) {
  if (held_.takes_program()) broadcast_program(group);
}

void StateTransfer::broadcast_program(const StepGroup& group) const {
  for (const auto& [form, memory] : program_)
    broadcast(group, "the state of the program", form, memory, plan().source);
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
