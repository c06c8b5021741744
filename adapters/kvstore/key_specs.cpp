#include "adapters/kvstore/key_specs.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/unique_dim.h>

#include <algorithm>
#include <utility>

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

void KeySpecs::check(const KeyedTensors& one, std::string_view operation) const {
  const std::string what = call_of(operation, one.key);
  const ValueSpec& stored = at(one.key, what);
  if (one.tensors.empty()) throw KVStoreError(what + ": no tensor");
  for (const at::Tensor& tensor : one.tensors) {
    const ValueSpec spec = spec_of(tensor, what);
    if (spec == stored) continue;
    throw KVStoreError(what + ": the tensor is " + spec.text() + ", the value of the store " +
                       stored.text());
  }
}

void KeySpecs::check_pull(const std::vector<KeyedTensors>& outs) const {
  for (const KeyedTensors& one : outs) {
    check(one, "pull");
    for (const at::Tensor& tensor : one.tensors) {
      if (tensor.layout() != at::kStrided)
        throw KVStoreError(call_of("pull", one.key) +
                           ": the tensor is sparse; use row_sparse_pull");
    }
  }
}

std::vector<ValueSpec> KeySpecs::check_new(const std::vector<KeyedTensors>& values) const {
  std::vector<ValueSpec> added;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [key, tensors] = values[i];
    const std::string what = call_of("init", key);
    check_kind(key, what);
    if (values.front().key.is_number() != key.is_number())
      throw KVStoreError(what + ": a store has integers or texts as keys, not both");
    if (const auto problem = key_problem(key)) throw KVStoreError(what + ": the key " + *problem);
    if (tensors.size() != 1) throw KVStoreError(what + ": one tensor is needed");
    added.push_back(kvstore::spec_of(tensors[0], what));
    const auto known = specs_.find(key);
    const auto twice = std::find_if(values.begin(), values.begin() + static_cast<long>(i),
                                    [&](const KeyedTensors& each) { return each.key == key; });
    const bool in_call = twice != values.begin() + static_cast<long>(i);
    if (known == specs_.end() && !in_call) continue;
    const ValueSpec& first = known != specs_.end()
                                 ? known->second
                                 : added[static_cast<std::size_t>(twice - values.begin())];
    throw KVStoreError(what + ": it was initialised before; the store has " + first.text() +
                       ", this value is " + added.back().text());
  }
  return added;
}

void KeySpecs::check_rows(const Key& key, const at::Tensor& row_ids) const {
  const std::string what = call_of("row_sparse_pull", key);
  const ValueSpec& spec = at(key, what);
  if (spec.shape.empty()) throw KVStoreError(what + ": a scalar has no rows");
  if (!row_ids.defined() || row_ids.dim() != 1 ||
      (row_ids.scalar_type() != at::kLong && row_ids.scalar_type() != at::kInt))
    throw KVStoreError(what + ": the rows are integers of one dimension");
  if (row_ids.numel() == 0) return;
  const auto lowest = row_ids.min().item<std::int64_t>();
  const auto highest = row_ids.max().item<std::int64_t>();
  if (lowest >= 0 && static_cast<std::uint64_t>(highest) < spec.shape[0]) return;
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

std::vector<KeyedTensors> with_keys_once(const std::vector<KeyedTensors>& values) {
  std::vector<KeyedTensors> once;
  for (const KeyedTensors& one : values) {
    const auto same = std::ranges::find(once, one.key, &KeyedTensors::key);
    if (same == once.end()) {
      once.push_back(one);
    } else {
      same->tensors.insert(same->tensors.end(), one.tensors.begin(), one.tensors.end());
    }
  }
  return once;
}

at::Tensor rows_of(const at::Tensor& value, const at::Tensor& row_ids) {
  const at::Tensor sorted = std::get<0>(at::unique_dim(row_ids.to(value.device(), at::kLong), 0));
  // The rows are sorted and unique: nothing is left to check or to add up.
  return at::_sparse_coo_tensor_unsafe(sorted.unsqueeze(0), value.index_select(0, sorted),
                                       value.sizes(), value.scalar_type(), at::kSparse,
                                       value.device(), {}, /*is_coalesced=*/true);
}

}  // namespace dpwa::kvstore
