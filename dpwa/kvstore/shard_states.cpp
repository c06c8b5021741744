#include <utility>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvstore {

// The state of the optimizer of a slice, for a worker that saves it, or from one that loads it.
// With kvstore.update: worker a worker places the value behind it, too.
void ShardEngine::receive(const MemberId& from, std::uint64_t tag, const StateMessage& message,
                          TimePoint now) {
  const auto refused = [&](AnswerKind kind, const std::string& problem) {
    explain_refusal(from.name, tag, message.slice, kind, 0, problem);
  };
  Entry* const found = slice_for(from, tag, message.epoch, message.slice, 0, /*at_end=*/true);
  if (found == nullptr) return;
  Held& held = found->second;
  if (message.kind != StateMessage::Kind::place) {
    const auto bytes = held.optimizer->bytes();
    return send(from.name, tag,
                StateMessage{epoch_.number,
                             message.slice,
                             StateMessage::Kind::give,
                             held.optimizer_options,
                             held.optimizer->steps(),
                             {bytes.begin(), bytes.end()}});
  }

  Waiter waiter{from.name, tag, AnswerKind::counted, 0, false};
  // A message that was sent again: the state was placed, and there may have been updates since.
  if (held.placed == std::pair(from, tag)) return answer_duplicate(*found, waiter);
  const auto options = decode_options(message.optimizer);
  if (!options) {
    return refused(AnswerKind::bad_optimizer,
                   "the optimizer is unknown to this server, or its options are not sound");
  }
  const DType dtype = held.spec.dtype;
  const std::uint64_t state_bytes = OptimizerState::bytes_of(*options, dtype, held.elements);
  const std::uint64_t value_bytes = held.elements * size_of(dtype);
  const bool has_value = message.state.size() == state_bytes + value_bytes;
  if (!has_value && message.state.size() != state_bytes) {
    return refused(AnswerKind::wrong_spec,
                   "a state of " + std::to_string(message.state.size()) + " bytes, where that of " +
                       std::string(name_of(options->kind)) + " has " + std::to_string(state_bytes) +
                       ", and with the value " + std::to_string(state_bytes + value_bytes));
  }
  const std::span<const std::byte> content = message.state;
  const std::uint64_t has = held.optimizer->bytes().size();
  const auto why = state_bytes > has ? memory_.shortage(state_bytes - has) : std::nullopt;
  if (why) return refused(AnswerKind::no_memory, *why);
  held.optimizer = std::make_shared<OptimizerState>(*OptimizerState::restored(
      *options, dtype, held.elements, message.steps, content.first(state_bytes)));
  count_bytes(held);
  held.optimizer_options = message.optimizer;
  // Others may still read the one before.
  if (has_value) held.values = std::make_shared<Bytes>(dpwa::copy_of(content.subspan(state_bytes)));
  held.placed = {from, tag};
  ++held.version;
  held.stamp = epoch_.number;
  if (!must_store(held)) return answer(*found, waiter);
  held.pending.add(held.version, held.round, {std::move(waiter)});
  send_copy(*found, now);
}

}  // namespace dpwa::kvstore
