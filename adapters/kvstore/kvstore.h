#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "adapters/kvstore/torch_values.h"
#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/values.h"

namespace dpwa {

namespace kvstore {
class LocalStore;
}

// Values by key, with the operations of MXNet's KVStore under the same names. Usable without the
// adapter. This version has the types of one process with several devices:
//
//   type                              gradients are summed in      weights are updated
//   local_update_cpu, local           host memory                  in the store: set_optimizer
//   local_allreduce_cpu               host memory                  on every device, by the program
//   local_allreduce_device, device    memory of the value's device on every device, by the program
//
//   dpwa::KVStore store("local");
//   store.set_optimizer(optimizer);                  // a torch::optim one, or OptimizerOptions
//   store.init("w", weight);
//   for (...) {
//     store.push("w", {gradient_of_device_0, gradient_of_device_1});
//     store.pull("w", {weight_of_device_0, weight_of_device_1});
//   }
//
// Values are fp32, fp64, fp16 or bf16, and are summed in fp32 (fp64 in fp64). Keys are integers or
// texts, not both in one store. A push sums all values of a key, also where the key comes several
// times in a list. The sum goes to the optimizer or updater, if there is one; else it replaces the
// stored value. The optimizer sees the sum: set OptimizerOptions::rescale to 1 / devices for the
// mean. Every type takes an optimizer, which works in host memory; an updater works where the sum
// is.
//
// A call that does not fit throws KVStoreError, which names the key and both shapes: it has changed
// nothing, and the store goes on. One thread at a time.
class KVStore {
 public:
  using Key = kvstore::Key;
  using Keys = std::vector<Key>;
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;
  using Versions = std::vector<std::uint64_t>;
  // Changes `stored` in place by `sum`, the sum of what was pushed (fp32; fp64 for fp64).
  using Updater =
      std::function<void(const Key& key, const at::Tensor& sum, const at::Tensor& stored)>;

  explicit KVStore(std::string_view type = "local");
  ~KVStore();
  KVStore(KVStore&&) noexcept;
  KVStore& operator=(KVStore&&) noexcept;

  // The name in the first place of a line of the table above.
  std::string_view type() const;
  int rank() const { return 0; }
  int num_workers() const { return 1; }
  // Nodes that have not been heard of for so long.
  int num_dead_node(std::chrono::milliseconds /*silent_for*/ = std::chrono::minutes(1)) const {
    return 0;
  }
  // Returns once all workers have called it.
  void barrier() {}

  // Copies the value into the store. Once for each key.
  void init(const Key& key, const at::Tensor& value);
  void init(const Keys& keys, const Tensors& values);

  // One tensor, or one for each device. A sparse tensor (COO) stands for zeros elsewhere; its
  // repeated rows are summed. A higher priority is sent earlier where there is a network.
  void push(const Key& key, const at::Tensor& value, int priority = 0);
  void push(const Key& key, const Tensors& values, int priority = 0);
  void push(const Keys& keys, const Tensors& values, int priority = 0);
  void push(const Keys& keys, const TensorLists& values, int priority = 0);

  // Copies the stored value into the tensors, which have its shape and type. Returns for each key
  // the number of pushes that the value holds.
  std::uint64_t pull(const Key& key, const at::Tensor& out, int priority = 0);
  std::uint64_t pull(const Key& key, const Tensors& outs, int priority = 0);
  Versions pull(const Keys& keys, const Tensors& outs, int priority = 0);
  Versions pull(const Keys& keys, const TensorLists& outs, int priority = 0);

  // push, then pull; nothing is pushed when either does not fit.
  std::uint64_t pushpull(const Key& key, const Tensors& values, const Tensors& outs,
                         int priority = 0);
  Versions pushpull(const Keys& keys, const TensorLists& values, const TensorLists& outs,
                    int priority = 0);

  // init, then pull.
  void broadcast(const Key& key, const at::Tensor& value, const Tensors& outs, int priority = 0);
  void broadcast(const Keys& keys, const Tensors& values, const TensorLists& outs,
                 int priority = 0);

  // The rows `row_ids` (integers of one dimension; repeated ones once) of a value, as a coalesced
  // sparse tensor of its shape.
  at::Tensor row_sparse_pull(const Key& key, const at::Tensor& row_ids, int priority = 0);

  // Replaces an optimizer, and the other way round.
  void set_updater(Updater updater);
  // The optimizer that the store runs from now on: its name and numbers, not its state. Call it
  // again to change the learning rate: as long as the kind is the same, the state stays. Throws
  // KVStoreError that lists the known optimizers for another one, and for parameter groups with
  // different options.
  void set_optimizer(const kvstore::OptimizerOptions& options);
  void set_optimizer(const torch::optim::Optimizer& optimizer);
  // What is pushed from now on is compressed. Devices keep what they could not send yet.
  void set_gradient_compression(const kvstore::CompressionOptions& options);

  // The state of the optimizer, such as moments, with its name and numbers. Written to a temporary
  // file beside it and renamed. Throws KVStoreError without an optimizer, and std::runtime_error
  // that names the file when it cannot be written.
  void save_optimizer_states(const std::filesystem::path& file) const;
  // The keys must have been initialised. Without an optimizer, that of the file is set. Throws
  // KVStoreError that names the file when it is damaged or does not fit.
  void load_optimizer_states(const std::filesystem::path& file);

 private:
  std::unique_ptr<kvstore::LocalStore> store_;
};

}  // namespace dpwa
