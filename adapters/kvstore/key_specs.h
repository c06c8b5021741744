#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/kvstore/store.h"
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

  // The types and shapes of values that may be initialised together, in their order.
  std::vector<ValueSpec> check_new(const std::vector<KeyedTensors>& values) const;
  const ValueSpec& at(const Key& key, const std::string& what) const;
  void check(const KeyedTensors& one, std::string_view operation) const;
  // Tensors that can be filled.
  void check_pull(const std::vector<KeyedTensors>& outs) const;
  // Rows of a value: integers of one dimension, in its range.
  void check_rows(const Key& key, const at::Tensor& row_ids) const;

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

// Every key once, in the order of the call, with the values of a repeated one together.
std::vector<KeyedTensors> with_keys_once(const std::vector<KeyedTensors>& values);

// The rows of a value, after check_rows(): each once and in order.
at::Tensor rows_of(const at::Tensor& value, const at::Tensor& row_ids);

}  // namespace dpwa::kvstore
