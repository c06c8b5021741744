#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/kvstore/torch_values.h"
#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/saved_states.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {

// The stores of one process with several devices, as MXNet names them.
enum class LocalType {
  local_update_cpu,        // gradients are summed and weights updated in host memory
  local_allreduce_cpu,     // gradients are summed in host memory; every device updates
  local_allreduce_device,  // gradients are summed on the device of the stored value; every device
                           // updates
};

// Also by the aliases `local` (local_update_cpu) and `device` (local_allreduce_device). Throws
// KVStoreError that lists the known names.
LocalType local_type(std::string_view name);
std::string_view name_of(LocalType type);

// A key, and one tensor for each device.
struct KeyedTensors {
  Key key;
  std::vector<at::Tensor> tensors;
};

// Changes `stored` in place by `sum`, the sum of what was pushed (fp32; fp64 for fp64).
using Updater =
    std::function<void(const Key& key, const at::Tensor& sum, const at::Tensor& stored)>;

// The store within one process. A call that throws KVStoreError has changed nothing. One thread at
// a time; sums and updates use the compute threads of torch.
class LocalStore {
 public:
  explicit LocalStore(LocalType type) : type_(type) {}

  LocalType type() const { return type_; }

  // One tensor for each key, each once.
  void init(const std::vector<KeyedTensors>& values);
  // Sums the values of every key, those of a key that comes twice as well, and gives the sum to the
  // optimizer or updater; without one it replaces the stored value.
  void push(const std::vector<KeyedTensors>& values);
  // Copies the stored value of each key to its tensors. Returns the number of pushes that each
  // holds.
  std::vector<std::uint64_t> pull(const std::vector<KeyedTensors>& outs) const;
  // Throws as a pull would.
  void check_pull(const std::vector<KeyedTensors>& outs) const;
  // The rows `row_ids` (integers of one dimension; repeated ones once) of the value of `key`: a
  // coalesced sparse tensor of its shape.
  at::Tensor row_sparse_pull(const Key& key, const at::Tensor& row_ids) const;

  // An optimizer replaces an updater and the other way round. States stay as long as the kind of
  // optimizer does, so that a learning rate may change at any step.
  void set_updater(Updater updater);
  void set_optimizer(const OptimizerOptions& options);
  // Of gradients pushed from now on; residuals of before are dropped.
  void set_compression(const CompressionOptions& options);

  // Throws KVStoreError without an optimizer.
  SavedStates states() const;
  // Without an optimizer, that of the states is set. Throws KVStoreError for another kind of
  // optimizer and for unknown keys.
  void load(const SavedStates& states);

 private:
  struct Value {
    ValueSpec spec;
    at::Tensor stored;
    std::uint64_t version = 0;
    std::vector<OptimizerState> states;                // by range
    std::vector<std::vector<Compressor>> compressors;  // by position in a push and by range
  };

  const Value& value_of(const Key& key, const std::string& what) const;
  void check_kind(const Key& key, const std::string& what) const;
  void check(const KeyedTensors& one, const std::string& what) const;
  void push(const Key& key, const std::vector<at::Tensor>& tensors);
  at::Tensor sum_on_device(const Value& value, const std::vector<at::Tensor>& tensors) const;
  void merge_in_host_memory(const Key& key, Value& value, const std::vector<at::Tensor>& tensors);

  LocalType type_;
  std::map<Key, Value> values_;
  Updater updater_;
  std::optional<OptimizerOptions> optimizer_;
  CompressionOptions compression_;
};

}  // namespace dpwa::kvstore
