#include "dpwa/kvworker/key_specs.h"

#include <algorithm>

#include "dpwa/kvworker/error.h"

namespace dpwa::kvstore {

std::string KeySpecs::call_of(std::string_view operation, const Key& key) const {
  std::string what = std::string(operation) + " of key " + key.text();
  if (!worker_.empty()) what += ", worker " + worker_;
  return what;
}

const ValueSpec& KeySpecs::at(const Key& key, const std::string& what) const {
  check_kind(key, what);
  const auto found = specs_.find(key);
  if (found == specs_.end()) throw KVStoreError(what + ": no value has been set by init");
  return found->second;
}

void KeySpecs::check_kind(const Key& key, const std::string& what) const {
  if (specs_.empty()) return;
  const bool integers = specs_.begin()->first.is_number();
  if (key.is_number() == integers) return;
  throw KVStoreError(what + ": the keys of this store are " + (integers ? "integers" : "texts"));
}

void KeySpecs::check(const Key& key, const ValueSpec& spec, std::string_view operation) const {
  const std::string what = call_of(operation, key);
  const ValueSpec& stored = at(key, what);
  if (spec == stored) return;
  throw KVStoreError(what + ": the tensor is " + spec.text() + ", the value of the store " +
                     stored.text());
}

void KeySpecs::check_new(const KeyedSpecs& values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [key, spec] = values[i];
    const std::string what = call_of("init", key);
    check_kind(key, what);
    if (values.front().first.is_number() != key.is_number())
      throw KVStoreError(what + ": a store has integers or texts as keys, not both");
    if (const auto problem = key_problem(key)) throw KVStoreError(what + ": the key " + *problem);
    const auto known = specs_.find(key);
    const auto twice = std::ranges::find(values, key, &KeyedSpecs::value_type::first);
    const bool in_call = twice - values.begin() < static_cast<std::ptrdiff_t>(i);
    if (known == specs_.end() && !in_call) continue;
    const ValueSpec& first = known != specs_.end() ? known->second : twice->second;
    throw KVStoreError(what + ": it was initialised before; the store has " + first.text() +
                       ", this value is " + spec.text());
  }
}

void KeySpecs::check_rows(const Key& key, std::int64_t lowest, std::int64_t highest) const {
  const std::string what = call_of("row_sparse_pull", key);
  const ValueSpec& spec = at(key, what);
  if (spec.shape.empty()) throw KVStoreError(what + ": a scalar has no rows");
  if (lowest >= 0 && highest < static_cast<std::int64_t>(spec.shape[0])) return;
  throw KVStoreError(what + ": rows " + std::to_string(lowest) + " to " + std::to_string(highest) +
                     " of " + std::to_string(spec.shape[0]));
}

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
