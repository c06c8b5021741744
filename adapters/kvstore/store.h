#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "adapters/kvstore/torch_values.h"
#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/saved_states.h"
#include "dpwa/kvstore/values.h"
#include "dpwa/kvworker/call.h"

namespace dpwa::kvstore {

// A key, and one tensor for each device.
struct KeyedTensors {
  Key key;
  std::vector<at::Tensor> tensors;
};

// Changes `stored` in place by `sum`, the sum of what was pushed (fp32; fp64 for fp64).
using Updater =
    std::function<void(const Key& key, const at::Tensor& sum, const at::Tensor& stored)>;

// The operations of KVStore, for one type of store. A call that throws KVStoreError has changed
// nothing. One thread at a time.
class Store {
 public:
  virtual ~Store() = default;

  virtual std::string_view type() const = 0;
  virtual int rank() const = 0;
  virtual int num_workers() const = 0;
  virtual int num_dead_node(std::chrono::milliseconds silent_for) const = 0;
  virtual std::uint64_t dropped_pushes() = 0;
  virtual void barrier() = 0;
  virtual void reload_security() = 0;

  // One tensor for each key, each once.
  virtual void init(const std::vector<KeyedTensors>& values) = 0;
  // Sums the values of every key, those of a key that comes twice as well, and gives the sum to the
  // optimizer or updater; without one it replaces the stored value.
  virtual std::unique_ptr<Call> push(const std::vector<KeyedTensors>& values, int priority) = 0;
  // Copies the stored value of each key to its tensors.
  virtual std::unique_ptr<Call> pull(const std::vector<KeyedTensors>& outs, int priority) = 0;
  // Does neither when one of them does not fit.
  virtual std::unique_ptr<Call> pushpull(const std::vector<KeyedTensors>& values,
                                         const std::vector<KeyedTensors>& outs, int priority) = 0;
  // The rows `row_ids` (integers of one dimension; repeated ones once) of the value of `key`: a
  // coalesced sparse tensor of its shape.
  virtual at::Tensor row_sparse_pull(const Key& key, const at::Tensor& row_ids, int priority) = 0;

  virtual void set_updater(Updater updater) = 0;
  // States stay as long as the kind of optimizer does, so that a learning rate may change at any
  // step.
  virtual void set_optimizer(const OptimizerOptions& options) = 0;
  // The compression of gradients pushed from now on. Earlier residuals are dropped.
  virtual void set_compression(const CompressionOptions& options) = 0;

  // Throws KVStoreError without an optimizer.
  virtual SavedStates states() = 0;
  // Sets the optimizer of the states when there is none. Throws KVStoreError for another kind of
  // optimizer and for unknown keys.
  virtual void load(const SavedStates& states) = 0;
};

}  // namespace dpwa::kvstore
