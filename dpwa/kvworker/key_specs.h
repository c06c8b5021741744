#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dpwa/kvstore/saved_states.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {

// The keys of a store with the types and shapes of their values, and the checks of calls against
// them. Every check throws KVStoreError that names the key, the worker where there are several, and
// both shapes.
class KeySpecs {
 public:
  // `worker`: its name; empty where there is one.
  explicit KeySpecs(std::string worker = {}) : worker_(std::move(worker)) {}

  // Such as "push of key 'w', worker w1": the beginning of a message.
  std::string call_of(std::string_view operation, const Key& key) const;

  using KeyedSpecs = std::vector<std::pair<Key, ValueSpec>>;
  // Whether these values may be initialised together.
  void check_new(const KeyedSpecs& values) const;
  const ValueSpec& at(const Key& key, const std::string& what) const;
  // Of a value that is pushed, or of one that is to be filled.
  void check(const Key& key, const ValueSpec& spec, std::string_view operation) const;
  // Rows `lowest` to `highest` of a value.
  void check_rows(const Key& key, std::int64_t lowest, std::int64_t highest) const;

  void add(const Key& key, ValueSpec spec) { specs_.emplace(key, std::move(spec)); }
  const std::map<Key, ValueSpec>& all() const { return specs_; }

 private:
  void check_kind(const Key& key, const std::string& what) const;

  std::string worker_;
  std::map<Key, ValueSpec> specs_;
};

// The options with which states are loaded into a store that has these; none: those of the states.
// Throws KVStoreError when the states are those of another optimizer.
OptimizerOptions options_to_load(const std::optional<OptimizerOptions>& options,
                                 const SavedStates& states);

// The end of a KVStoreError: the states of a key do not belong to the optimizer that would be
// saved.
inline constexpr auto last_by_another = ": its last update was by another optimizer";

}  // namespace dpwa::kvstore
