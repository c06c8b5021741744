#include "dpwa/kvworker/key_states.h"

#include <utility>

#include "dpwa/kvstore/saved_states.h"
#include "dpwa/kvstore/slices.h"

namespace dpwa::kvstore {

std::vector<StateMessage> messages_of(const KeyShape& shape, const KeyState& state,
                                      std::span<const std::byte> value) {
  const SavedStates whole{state.options,
                          {{shape.key, shape.dtype, {0, shape.elements}, state.state}}};
  const OptionsBytes form = encode(state.options);
  const std::size_t size = size_of(shape.dtype);
  std::vector<StateMessage> messages;
  for (const Slice& slice : cut_into_slices(shape.key, shape.elements, shape.servers)) {
    const OptimizerState part = state_of_range(whole, shape.key, shape.dtype, slice.elements);
    StateMessage message;
    message.kind = StateMessage::Kind::place;
    message.optimizer.assign(form.begin(), form.end());
    message.steps = part.steps();
    message.state.assign(part.bytes().begin(), part.bytes().end());
    if (!value.empty()) {
      const auto own = value.subspan(slice.elements.from * size, slice.elements.count * size);
      message.state.insert(message.state.end(), own.begin(), own.end());
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

std::optional<KeyState> whole_of(const KeyShape& shape, const std::vector<StateMessage>& slices) {
  const auto cuts = cut_into_slices(shape.key, shape.elements, shape.servers);
  std::optional<SavedStates> states;
  for (std::size_t i = 0; i < cuts.size() && i < slices.size(); ++i) {
    const auto options = decode_options(slices[i].optimizer);
    if (!options) continue;
    if (!states) states = SavedStates{*options, {}};
    auto part = OptimizerState::restored(states->options, shape.dtype, cuts[i].elements.count,
                                         slices[i].steps, slices[i].state);
    if (!part) return std::nullopt;
    states->ranges.push_back({shape.key, shape.dtype, cuts[i].elements, *std::move(part)});
  }
  if (!states) return std::nullopt;
  return KeyState{states->options,
                  state_of_range(*states, shape.key, shape.dtype, {0, shape.elements})};
}

}  // namespace dpwa::kvstore
