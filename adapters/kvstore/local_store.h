#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "adapters/kvstore/store.h"
#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/saved_states.h"
#include "dpwa/kvstore/store_type.h"
#include "dpwa/kvstore/values.h"
#include "dpwa/kvworker/key_specs.h"

namespace dpwa::kvstore {

// A type local_* by its name, or by one of the aliases `local` (local_update_cpu) and `device`
// (local_allreduce_device). Throws KVStoreError that lists the known names.
KvstoreType local_type(std::string_view name);
// The type of a store for a model on `device`: the others would move its gradients, and weights,
// through host memory and back in each step.
KvstoreType local_type_on(at::Device device, KvstoreType type);

// The store within one process, of a type local_*. Sums and updates use the compute threads of
// torch.
class LocalStore : public Store {
 public:
  explicit LocalStore(KvstoreType type) : type_(type) {}

  std::string_view type() const override;
  int rank() const override { return 0; }
  int num_workers() const override { return 1; }
  int num_dead_node(std::chrono::milliseconds) const override { return 0; }
  std::uint64_t dropped_pushes() override { return 0; }
  void barrier() override {}
  void reload_security() override {}

  void init(const std::vector<KeyedTensors>& values) override;
  // All calls are over when they return.
  std::unique_ptr<Call> push(const std::vector<KeyedTensors>& values, int priority) override;
  std::unique_ptr<Call> pull(const std::vector<KeyedTensors>& outs, int priority) override;
  std::unique_ptr<Call> pushpull(const std::vector<KeyedTensors>& values,
                                 const std::vector<KeyedTensors>& outs, int priority) override;
  at::Tensor row_sparse_pull(const Key& key, const at::Tensor& row_ids, int priority) override;

  // An optimizer replaces an updater and the other way round.
  void set_updater(Updater updater) override;
  void set_optimizer(const OptimizerOptions& options) override;
  void set_compression(const CompressionOptions& options) override;

  bool has(const Key& key) const { return values_.contains(key); }
  SavedStates states() override;
  void load(const SavedStates& states) override;

 private:
  struct Value {
    ValueSpec spec;
    at::Tensor stored;
    std::uint64_t version = 0;
    std::vector<OptimizerState> states;                // by range
    std::vector<std::vector<Compressor>> compressors;  // by position in a push and by range
  };

  void push_one(const Key& key, const std::vector<at::Tensor>& tensors);
  at::Tensor sum_on_device(const Value& value, const std::vector<at::Tensor>& tensors) const;
  void merge_in_host_memory(const Key& key, Value& value, const std::vector<at::Tensor>& tensors);

  KvstoreType type_;
  KeySpecs specs_;
  std::map<Key, Value> values_;
  Updater updater_;
  std::optional<OptimizerOptions> optimizer_;
  CompressionOptions compression_;
};

}  // namespace dpwa::kvstore
