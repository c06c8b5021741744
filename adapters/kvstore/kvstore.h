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

struct Config;

namespace kvstore {
class Call;
class Store;
}  // namespace kvstore

// Values by key, with the operations of MXNet's KVStore under the same names. Usable without the
// adapter. The types of one process with several devices:
//
//   type                              gradients are summed in      weights are updated
//   local_update_cpu, local           host memory                  in the store: set_optimizer
//   local_allreduce_cpu               host memory                  on every device, by the program
//   local_allreduce_device, device    memory of the value's device on every device, by the program
//
// The types of workers on many machines, with their values on servers (dpwa kvserver):
//
//   type          a push of a key by a worker                       a pull waits for
//   dist_sync     the pushes of all workers for one step are one    all pushes of the steps that
//                 update; each worker's n-th push of a key is       this worker has pushed
//                 its step n
//   dist_async    is an update; set_optimizer is needed             its own pushes
//   dist_ssp      is an update; set_optimizer is needed             its own pushes, and those of
//                                                                   steps more than
//                                                                   kvstore.staleness behind
//
//   dpwa::KVStore store("local");                    // or: store(dpwa::load_config(file, "w1"))
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
// mean. Every type takes an optimizer, which works in host memory. Only the local types take an
// updater, which works where the sum is: servers never run code of a program.
//
// A call that does not fit throws KVStoreError, which names the key, the worker and both shapes: it
// has changed nothing, and the store goes on. One thread at a time.
//
// With the types dist_*, workers may die, hang, return and join at any time: a step, a pull or a
// barrier waits for those that take part. A worker that was left out takes part again with its next
// call (docs/KVSTORE.md).
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

  // A push or a pull that has begun. Not used after its store has ended.
  class Handle {
   public:
    explicit Handle(std::unique_ptr<kvstore::Call> call);
    ~Handle();
    Handle(Handle&&) noexcept;
    Handle& operator=(Handle&&) noexcept;
    // Whether wait() returns at once.
    bool done();
    // A push: waits until the servers have acknowledged it. A pull: fills the tensors, which must
    // be left alone until then. Returns for each key the number of updates that the value holds.
    // Throws KVStoreError when the servers refused it.
    Versions wait();

   private:
    std::unique_ptr<kvstore::Call> call_;
  };

  explicit KVStore(std::string_view type = "local");
  // The type of `kvstore.type`; with one of dist_*, as the worker `config.self`. Returns once the
  // servers and kvstore.min_workers workers are there. Throws KVStoreError when they are not within
  // kvstore.start_wait_ms, and ConfigError for a file that does not fit.
  explicit KVStore(const Config& config);
  ~KVStore();
  KVStore(KVStore&&) noexcept;
  KVStore& operator=(KVStore&&) noexcept;

  // The type, by the first name of its line in the table above.
  std::string_view type() const;
  // Among the workers that take part now, in the order of their names: both change when one is
  // left out or joins.
  int rank() const;
  int num_workers() const;
  // Workers that were left out, and servers that are down or do not answer, for so long.
  int num_dead_node(std::chrono::milliseconds silent_for = std::chrono::minutes(1)) const;
  // Pushes of this worker that did not count: not finite, dropped, or made while it was left out;
  // those that were under way then are in it, and may have counted. A push is in it once its
  // wait(), or a later pull of its key, has returned. 0 with local types: a local store takes a
  // push that is not finite into the value.
  std::uint64_t dropped_pushes() const;
  // Returns once all workers that take part have called it as often as this one.
  void barrier();
  // Reads the files of the security section again, for example after SIGHUP: keys and certificates
  // for the connections from now on. Throws KVStoreError with the reason when they cannot be used;
  // the old ones then stay in use.
  void reload_security();

  // Copies the value into the store. Once for each key. With the types dist_* every worker calls it
  // for every key: the value of rank 0 counts, and a worker that comes later finds the current one.
  void init(const Key& key, const at::Tensor& value);
  void init(const Keys& keys, const Tensors& values);

  // One tensor, or one for each device. A sparse tensor (COO) stands for zeros elsewhere; its
  // repeated rows are summed. A higher priority is sent earlier where there is a network. The
  // tensors are free when it returns; with the types dist_* the push is then under way. When the
  // servers refuse it, the next call for the key throws. At most two pushes of a key are under way:
  // a third one waits.
  void push(const Key& key, const at::Tensor& value, int priority = 0);
  void push(const Key& key, const Tensors& values, int priority = 0);
  void push(const Keys& keys, const Tensors& values, int priority = 0);
  void push(const Keys& keys, const TensorLists& values, int priority = 0);

  Handle push_async(const Keys& keys, const TensorLists& values, int priority = 0);

  // Copies the stored value into the tensors, which have its shape and type. Returns for each key
  // the number of updates that the value holds: of pushes, or of steps with dist_sync. Values of
  // several keys, or slices of a large one, may be of different versions.
  std::uint64_t pull(const Key& key, const at::Tensor& out, int priority = 0);
  std::uint64_t pull(const Key& key, const Tensors& outs, int priority = 0);
  Versions pull(const Keys& keys, const Tensors& outs, int priority = 0);
  Versions pull(const Keys& keys, const TensorLists& outs, int priority = 0);

  Handle pull_async(const Keys& keys, const TensorLists& outs, int priority = 0);

  // push, then pull; nothing is pushed when either does not fit. With dist_sync the value comes
  // with the answer to the push.
  std::uint64_t pushpull(const Key& key, const Tensors& values, const Tensors& outs,
                         int priority = 0);
  Versions pushpull(const Keys& keys, const TensorLists& values, const TensorLists& outs,
                    int priority = 0);
  Handle pushpull_async(const Keys& keys, const TensorLists& values, const TensorLists& outs,
                        int priority = 0);

  // init, then pull.
  void broadcast(const Key& key, const at::Tensor& value, const Tensors& outs, int priority = 0);
  void broadcast(const Keys& keys, const Tensors& values, const TensorLists& outs,
                 int priority = 0);

  // The rows `row_ids` (integers of one dimension; repeated ones once) of a value, as a coalesced
  // sparse tensor of its shape.
  at::Tensor row_sparse_pull(const Key& key, const at::Tensor& row_ids, int priority = 0);

  // Replaces an optimizer, and the other way round. Throws KVStoreError with the types dist_*.
  void set_updater(Updater updater);
  // The optimizer that the store runs from now on: its name and numbers, not its state. Call it
  // again to change the learning rate: as long as the kind is the same, the state stays. Throws
  // KVStoreError that lists the known optimizers for another one, and for parameter groups with
  // different options. With the types dist_* the servers run it: every worker calls it, and that of
  // rank 0 counts in a step of dist_sync.
  void set_optimizer(const kvstore::OptimizerOptions& options);
  void set_optimizer(const torch::optim::Optimizer& optimizer);
  // What is pushed from now on is compressed. What could not be sent yet stays, but for
  // Compression::none, with which it is dropped.
  void set_gradient_compression(const kvstore::CompressionOptions& options);

  // The state of the optimizer, such as moments, with its name and numbers. Written to a temporary
  // file beside it and renamed. Throws KVStoreError without an optimizer, and std::runtime_error
  // that names the file when it cannot be written. With the types dist_* the states of all keys
  // that this worker has initialised are fetched from the servers; one worker calls it, between two
  // barriers if they are to be of one step.
  void save_optimizer_states(const std::filesystem::path& file) const;
  // The keys must have been initialised. Without an optimizer, that of the file is set. Throws
  // KVStoreError that names the file when it is damaged or does not fit. With the types dist_* one
  // worker calls it, before a barrier: the states are placed on the servers, of which there may be
  // more or fewer than when the file was written.
  void load_optimizer_states(const std::filesystem::path& file);

 private:
  std::unique_ptr<kvstore::Store> store_;
};

}  // namespace dpwa
