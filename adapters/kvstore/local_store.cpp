#include "adapters/kvstore/local_store.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "adapters/common/tensor_bytes.h"
#include "adapters/kvstore/merge.h"
#include "adapters/kvstore/tensor_keys.h"
#include "dpwa/config/names.h"

namespace dpwa::kvstore {
namespace {

// The names of the types of a local store; each stands before its aliases.
std::vector<config::Word<KvstoreType>> local_names() {
  std::vector<config::Word<KvstoreType>> names;
  for (const auto& word : config::kvstore_type_words) {
    if (!is_local(word.value)) continue;
    names.push_back(word);
    for (const auto& alias : config::kvstore_type_aliases) {
      if (alias.value == word.value) names.push_back(alias);
    }
  }
  return names;
}

// The handle of a call that was done at once.
class DoneCall : public Call {
 public:
  explicit DoneCall(Versions versions) : versions_(std::move(versions)) {}
  bool done() override { return true; }
  Versions wait() override { return versions_; }

 private:
  Versions versions_;
};

}  // namespace

KvstoreType local_type(std::string_view name) {
  std::string known;
  for (const auto& word : local_names()) {
    if (name == word.name) return word.value;
    known.append(known.empty() ? "" : ", ").append(word.name);
  }
  if (name.starts_with("dist"))
    throw KVStoreError("type '" + std::string(name) +
                       "' needs servers: KVStore(config), where the cluster file has "
                       "kvstore.servers and kvstore.type; without servers: " +
                       known);
  throw KVStoreError("unknown type of store '" + std::string(name) + "'; known: " + known);
}

KvstoreType local_type_on(at::Device device, KvstoreType type) {
  return device.is_cpu() ? type : KvstoreType::local_allreduce_device;
}

std::string_view LocalStore::type() const {
  return config::name_in(config::kvstore_type_words, type_);
}

void LocalStore::init(const std::vector<KeyedTensors>& values) {
  const std::vector<ValueSpec> specs = check_new(specs_, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [key, tensors] = values[i];
    const bool on_device = type_ == KvstoreType::local_allreduce_device;
    const at::Tensor dense = dense_on(tensors[0], on_device ? tensors[0].device() : at::kCPU);
    values_.emplace(key, Value{specs[i], dense.clone(), 0, {}, {}});
    specs_.add(key, specs[i]);
  }
}

std::unique_ptr<Call> LocalStore::push(const std::vector<KeyedTensors>& values, int) {
  check(specs_, values, "push");
  for (const auto& [key, tensors] : with_keys_once(values)) push_one(key, tensors);
  Versions versions;
  for (const KeyedTensors& one : values) versions.push_back(values_.at(one.key).version);
  return std::make_unique<DoneCall>(std::move(versions));
}

std::unique_ptr<Call> LocalStore::pushpull(const std::vector<KeyedTensors>& values,
                                           const std::vector<KeyedTensors>& outs, int priority) {
  check_pull(specs_, outs);
  push(values, priority);
  return pull(outs, priority);
}

void LocalStore::push_one(const Key& key, const std::vector<at::Tensor>& tensors) {
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
  Gradients merge{dtype, elements, {}, {}};
  for (std::size_t i = 0; i < dense.size(); ++i) {
    merge.gradients.push_back(const_bytes_of(dense[i]));
    merge.compressors.push_back(compression_.type == Compression::none ? nullptr
                                                                       : &value.compressors[i]);
  }
  at::Tensor host = value.stored.cpu();  // the same tensor if it is in host memory
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

std::unique_ptr<Call> LocalStore::pull(const std::vector<KeyedTensors>& outs, int) {
  check_pull(specs_, outs);
  const at::NoGradGuard no_grad;
  Versions versions;
  for (const auto& [key, tensors] : outs) {
    const Value& value = values_.at(key);
    for (at::Tensor tensor : tensors) tensor.copy_(value.stored);
    versions.push_back(value.version);
  }
  return std::make_unique<DoneCall>(std::move(versions));
}

at::Tensor LocalStore::row_sparse_pull(const Key& key, const at::Tensor& row_ids, int) {
  check_rows(specs_, key, row_ids);
  const at::NoGradGuard no_grad;
  return rows_of(values_.at(key).stored, row_ids);
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
  for (auto& [key, value] : values_) {
    for (auto& of_device : value.compressors) {
      for (Compressor& each : of_device) each.change(options);
    }
  }
}

SavedStates LocalStore::states() {
  if (!optimizer_) throw KVStoreError("optimizer states of a store without an optimizer");
  SavedStates states{*optimizer_, {}};
  for (const auto& [key, value] : values_) {
    for (std::size_t i = 0; i < value.states.size(); ++i) {
      const ItemRange range = range_at(value.spec.elements(), i);
      if (!value.states[i].fits(*optimizer_, value.spec.dtype, range.count))
        throw KVStoreError(specs_.call_of("save", key) + last_by_another);
      states.ranges.push_back({key, value.spec.dtype, range, value.states[i]});
    }
  }
  return states;
}

void LocalStore::load(const SavedStates& states) {
  const OptimizerOptions options = options_to_load(optimizer_, states);
  std::map<Key, std::vector<OptimizerState>> loaded;
  for (const SavedRange& range : states.ranges) {
    if (loaded.contains(range.key)) continue;
    specs_.at(range.key, specs_.call_of("load", range.key));
    const Value& value = values_.at(range.key);
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
