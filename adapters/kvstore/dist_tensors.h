#pragma once

#include <vector>

#include "adapters/kvstore/store.h"
#include "dpwa/kvworker/dist_store.h"

namespace dpwa::kvstore {

// A worker of the types dist_* (DistStore) with tensors. A push sums those of the devices.
class DistTensors : public Store {
 public:
  explicit DistTensors(const Config& config) : store_(config) {}

  std::string_view type() const override { return store_.type(); }
  int rank() const override { return store_.rank(); }
  int num_workers() const override { return store_.num_workers(); }
  int num_dead_node(std::chrono::milliseconds silent_for) const override {
    return store_.num_dead_node(silent_for);
  }
  std::uint64_t dropped_pushes() override { return store_.dropped_pushes(); }
  void barrier() override { store_.barrier(); }
  void reload_security() override { store_.reload_security(); }

  void init(const std::vector<KeyedTensors>& values) override;
  std::unique_ptr<Call> push(const std::vector<KeyedTensors>& values, int priority) override;
  std::unique_ptr<Call> pull(const std::vector<KeyedTensors>& outs, int priority) override;
  std::unique_ptr<Call> pushpull(const std::vector<KeyedTensors>& values,
                                 const std::vector<KeyedTensors>& outs, int priority) override;
  at::Tensor row_sparse_pull(const Key& key, const at::Tensor& row_ids, int priority) override;

  void set_updater(Updater updater) override;  // throws
  void set_optimizer(const OptimizerOptions& options) override { store_.set_optimizer(options); }
  void set_compression(const CompressionOptions& options) override {
    store_.set_compression(options);
  }

  SavedStates states() override { return store_.states(); }
  void load(const SavedStates& states) override { store_.load(states); }

 private:
  DistStore store_;
};

}  // namespace dpwa::kvstore
