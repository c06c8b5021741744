#include "adapters/kvstore/local_store.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/unique_dim.h>

#include <algorithm>
#include <utility>

#include "adapters/kvstore/merge.h"

namespace dpwa::kvstore {
namespace {

constexpr std::pair<LocalType, std::string_view> local_names[] = {
    {LocalType::local_update_cpu, "local_update_cpu"},
    {LocalType::local_update_cpu, "local"},
    {LocalType::local_allreduce_cpu, "local_allreduce_cpu"},
    {LocalType::local_allreduce_device, "local_allreduce_device"},
    {LocalType::local_allreduce_device, "device"},
};

std::string call_of(std::string_view operation, const Key& key) {
  return std::string(operation) + " of key " + key.text();
}

}  // namespace

LocalType local_type(std::string_view name) {
  std::string known;
  for (const auto& [type, known_name] : local_names) {
    if (name == known_name) return type;
    known.append(known.empty() ? "" : ", ").append(known_name);
  }
  throw KVStoreError("unknown type of store '" + std::string(name) + "'; known: " + known);
}

std::string_view name_of(LocalType type) {
  const auto* const found =
      std::ranges::find(local_names, type, [](const auto& pair) { return pair.first; });
  return found->second;
}

const LocalStore::Value& LocalStore::value_of(const Key& key, const std::string& what) const {
  check_kind(key, what);
  const auto found = values_.find(key);
  if (found == values_.end()) throw KVStoreError(what + ": no value has been set by init");
  return found->second;
}

void LocalStore::check_kind(const Key& key, const std::string& what) const {
  if (values_.empty()) return;
  const bool integers = values_.begin()->first.is_number();
  if (key.is_number() == integers) return;
  throw KVStoreError(what + ": the keys of this store are " + (integers ? "integers" : "texts"));
}

void LocalStore::check(const KeyedTensors& one, const std::string& what) const {
  const Value& value = value_of(one.key, what);
  if (one.tensors.empty()) throw KVStoreError(what + ": no tensor");
  for (const at::Tensor& tensor : one.tensors) {
    const ValueSpec spec = spec_of(tensor, what);
    if (spec == value.spec) continue;
    throw KVStoreError(what + ": the tensor is " + spec.text() + ", the value of the store " +
                       value.spec.text());
  }
}

void LocalStore::init(const std::vector<KeyedTensors>& values) {
  std::map<Key, Value> added;
  for (const auto& [key, tensors] : values) {
    const std::string what = call_of("init", key);
    check_kind(key, what);
    if (!added.empty() && added.begin()->first.is_number() != key.is_number())
      throw KVStoreError(what + ": a store has integers or texts as keys, not both");
    if (const auto problem = key_problem(key)) throw KVStoreError(what + ": the key " + *problem);
    if (tensors.size() != 1) throw KVStoreError(what + ": one tensor is needed");
    Value value{spec_of(tensors[0], what), {}, 0, {}, {}};
    const auto known = values_.find(key);
    const auto twice = added.find(key);
    if (known != values_.end() || twice != added.end()) {
      const Value& first = known != values_.end() ? known->second : twice->second;
      throw KVStoreError(what + ": a second one; the store has " + first.spec.text() +
                         ", this value is " + value.spec.text());
    }
    const bool on_device = type_ == LocalType::local_allreduce_device;
    const at::Tensor dense = dense_on(tensors[0], on_device ? tensors[0].device() : at::kCPU);
    value.stored = dense.clone();
    added.emplace(key, std::move(value));
  }
  values_.merge(added);
}

void LocalStore::push(const std::vector<KeyedTensors>& values) {
  std::vector<KeyedTensors> pushed;  // every key once, in the order of the call
  for (const KeyedTensors& one : values) {
    check(one, call_of("push", one.key));
    const auto same = std::ranges::find(pushed, one.key, &KeyedTensors::key);
    if (same == pushed.end()) {
      pushed.push_back(one);
    } else {
      same->tensors.insert(same->tensors.end(), one.tensors.begin(), one.tensors.end());
    }
  }
  for (const auto& [key, tensors] : pushed) push(key, tensors);
}

void LocalStore::push(const Key& key, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  Value& value = values_.at(key);
  // The optimizers and the compression are passes over host memory.
  const bool in_host_memory =
      value.stored.is_cpu() || optimizer_ || compression_.type != Compression::none;
  if (in_host_memory) {
    merge_in_host_memory(key, value, tensors);
  } else {
    const at::Tensor sum = sum_on_device(value, tensors);
    if (updater_) {
      updater_(key, sum, value.stored);
    } else {
      value.stored.copy_(sum);
    }
  }
  ++value.version;
}

at::Tensor LocalStore::sum_on_device(const Value& value,
                                     const std::vector<at::Tensor>& tensors) const {
  const at::ScalarType wide = value.spec.dtype == DType::float64 ? at::kDouble : at::kFloat;
  const at::Device device = value.stored.device();
  at::Tensor sum = dense_on(tensors[0], device).to(wide, /*non_blocking=*/false, /*copy=*/true);
  for (std::size_t i = 1; i < tensors.size(); ++i) sum.add_(dense_on(tensors[i], device));
  return sum;
}

void LocalStore::merge_in_host_memory(const Key& key, Value& value,
                                      const std::vector<at::Tensor>& tensors) {
  const DType dtype = value.spec.dtype;
  const std::uint64_t elements = value.spec.elements();
  std::vector<at::Tensor> dense;
  for (const at::Tensor& tensor : tensors) dense.push_back(dense_on(tensor, at::kCPU));
  if (compression_.type != Compression::none) {
    while (value.compressors.size() < dense.size())
      value.compressors.push_back(compressors_of(compression_, dtype, elements));
  }
  Merge merge{dtype, elements, {}, {}};
  for (std::size_t i = 0; i < dense.size(); ++i) {
    merge.gradients.push_back(const_bytes_of(dense[i]));
    merge.compressors.push_back(compression_.type == Compression::none ? nullptr
                                                                       : &value.compressors[i]);
  }
  at::Tensor host = value.stored.cpu();  // itself where it is in host memory
  if (updater_) {
    const at::ScalarType wide = dtype == DType::float64 ? at::kDouble : at::kFloat;
    at::Tensor sum = at::empty(host.sizes(), host.options().dtype(wide));
    sum_into(merge, bytes_of(sum));
    updater_(key, sum.to(value.stored.device()), value.stored);
    return;
  }
  if (optimizer_) {
    value.states.resize(range_count(elements));
    update_by(merge, *optimizer_, value.states, bytes_of(host));
  } else {
    replace_by(merge, bytes_of(host));
  }
  if (!host.is_same(value.stored)) value.stored.copy_(host);
}

void LocalStore::check_pull(const std::vector<KeyedTensors>& outs) const {
  for (const KeyedTensors& one : outs) {
    const std::string what = call_of("pull", one.key);
    check(one, what);
    for (const at::Tensor& tensor : one.tensors) {
      if (tensor.layout() != at::kStrided)
        throw KVStoreError(what + ": the tensor is sparse; use row_sparse_pull");
    }
  }
}

std::vector<std::uint64_t> LocalStore::pull(const std::vector<KeyedTensors>& outs) const {
  check_pull(outs);
  const at::NoGradGuard no_grad;
  std::vector<std::uint64_t> versions;
  for (const auto& [key, tensors] : outs) {
    const Value& value = values_.at(key);
    for (at::Tensor tensor : tensors) tensor.copy_(value.stored);
    versions.push_back(value.version);
  }
  return versions;
}

at::Tensor LocalStore::row_sparse_pull(const Key& key, const at::Tensor& row_ids) const {
  const std::string what = call_of("row_sparse_pull", key);
  const Value& value = value_of(key, what);
  if (value.spec.shape.empty()) throw KVStoreError(what + ": a scalar has no rows");
  if (!row_ids.defined() || row_ids.dim() != 1 ||
      (row_ids.scalar_type() != at::kLong && row_ids.scalar_type() != at::kInt))
    throw KVStoreError(what + ": the rows are integers of one dimension");
  const at::NoGradGuard no_grad;
  const at::Tensor sorted =
      std::get<0>(at::unique_dim(row_ids.to(value.stored.device(), at::kLong), 0));
  const std::int64_t rows = value.stored.size(0);
  if (sorted.numel() > 0 &&
      (sorted[0].item<std::int64_t>() < 0 || sorted[-1].item<std::int64_t>() >= rows)) {
    throw KVStoreError(what + ": rows " + std::to_string(sorted[0].item<std::int64_t>()) + " to " +
                       std::to_string(sorted[-1].item<std::int64_t>()) + " of " +
                       std::to_string(rows));
  }
  // Sorted and each once: nothing is left to check or to add up.
  return at::_sparse_coo_tensor_unsafe(sorted.unsqueeze(0), value.stored.index_select(0, sorted),
                                       value.stored.sizes(), value.stored.scalar_type(),
                                       at::kSparse, value.stored.device(), {},
                                       /*is_coalesced=*/true);
}

void LocalStore::set_updater(Updater updater) {
  updater_ = std::move(updater);
  optimizer_.reset();
}

void LocalStore::set_optimizer(const OptimizerOptions& options) {
  if (const auto problem = options_problem(options)) throw KVStoreError(*problem);
  optimizer_ = options;
  updater_ = nullptr;
}

void LocalStore::set_compression(const CompressionOptions& options) {
  if (const auto problem = compression_problem(options)) throw KVStoreError(*problem);
  compression_ = options;
  for (auto& [key, value] : values_) value.compressors.clear();
}

SavedStates LocalStore::states() const {
  if (!optimizer_) throw KVStoreError("optimizer states of a store without an optimizer");
  SavedStates states{*optimizer_, {}};
  for (const auto& [key, value] : values_) {
    for (std::size_t i = 0; i < value.states.size(); ++i) {
      const ItemRange range = range_at(value.spec.elements(), i);
      states.ranges.push_back({key, value.spec.dtype, range, value.states[i]});
    }
  }
  return states;
}

void LocalStore::load(const SavedStates& states) {
  const OptimizerOptions options = optimizer_.value_or(states.options);
  const bool alike = options.kind == states.options.kind &&
                     OptimizerState::bytes_of(options, DType::float32, 1) ==
                         OptimizerState::bytes_of(states.options, DType::float32, 1);
  if (!alike) {
    throw KVStoreError("the optimizer states are those of " +
                       std::string(name_of(states.options.kind)) + ", the store has " +
                       std::string(name_of(options.kind)) + " with another state");
  }
  std::map<Key, std::vector<OptimizerState>> loaded;
  for (const SavedRange& range : states.ranges) {
    if (loaded.contains(range.key)) continue;
    const Value& value = value_of(range.key, call_of("load", range.key));
    auto& of_key = loaded[range.key];
    try {
      for (std::size_t i = 0; i < range_count(value.spec.elements()); ++i) {
        of_key.push_back(state_of_range(states, range.key, value.spec.dtype,
                                        range_at(value.spec.elements(), i)));
      }
    } catch (const std::invalid_argument& mismatch) {
      throw KVStoreError(mismatch.what());
    }
  }
  for (auto& [key, of_key] : loaded) values_.at(key).states = std::move(of_key);
  set_optimizer(options);
}

}  // namespace dpwa::kvstore
