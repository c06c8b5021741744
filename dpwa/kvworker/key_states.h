#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/optimizer.h"

namespace dpwa::kvstore {

// What cut_into_slices() needs of a key.
struct KeyShape {
  Key key;
  DType dtype = DType::float32;
  std::uint64_t elements = 0;
  std::uint32_t servers = 1;
};

// The state of the optimizer of one key, whole.
struct KeyState {
  OptimizerOptions options;
  OptimizerState state;
};

// To be placed, one message for each slice. `value`: of the key, to be placed with it; empty: it
// stays.
std::vector<StateMessage> messages_of(const KeyShape& shape, const KeyState& state,
                                      std::span<const std::byte> value);
// As the servers have given it; none: there was no update by an optimizer.
std::optional<KeyState> whole_of(const KeyShape& shape, const std::vector<StateMessage>& slices);

}  // namespace dpwa::kvstore
