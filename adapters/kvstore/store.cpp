#include "adapters/kvstore/store.h"

#include <string>

namespace dpwa::kvstore {

OptimizerOptions options_to_load(const std::optional<OptimizerOptions>& options,
                                 const SavedStates& states) {
  const OptimizerOptions chosen = options.value_or(states.options);
  const bool alike = chosen.kind == states.options.kind &&
                     OptimizerState::bytes_of(chosen, DType::float32, 1) ==
                         OptimizerState::bytes_of(states.options, DType::float32, 1);
  if (alike) return chosen;
  throw KVStoreError("the optimizer states are those of " +
                     std::string(name_of(states.options.kind)) + ", the store has " +
                     std::string(name_of(chosen.kind)) + " with another state");
}

}  // namespace dpwa::kvstore
