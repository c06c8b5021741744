#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "adapters/parallel/device_threads.h"
#include "adapters/parallel/flat_tensors.h"
#include "adapters/torch_types.h"
#include "dpwa/parallel/shares.h"

namespace dpwa {

// Whether replicas in host memory read the weights where the model has them, or get copies as those
// on a GPU do.
enum class HostWeights { shared, copied };

// The part of DeviceReplicas that does not depend on the class of the model.
class ReplicaGroup {
 public:
  using LossOf = std::function<at::Tensor(std::size_t device, const ItemRange& part)>;

  // `replicas`: of all devices but the first, in order. Throws std::invalid_argument when one is
  // not shaped as `main`.
  ReplicaGroup(torch::nn::Module& main, std::vector<c10::Device> devices,
               std::vector<std::shared_ptr<torch::nn::Module>> replicas, HostWeights host_weights);

  at::Tensor loss(std::uint64_t batch_size, const LossOf& loss_of);
  std::size_t size() const { return devices_.size(); }
  c10::Device device(std::size_t index) const { return devices_[index]; }

 private:
  // Parameters and then buffers of a module.
  using Tensors = std::vector<at::Tensor>;
  struct Replica {
    std::shared_ptr<torch::nn::Module> module;
    Tensors tensors;
    std::optional<FlatTensors> copies;  // that `tensors` are views of; none: the memory is shared
  };

  void pair_up(Tensors (*tensors_of)(const torch::nn::Module&), const char* what);
  void give_out(std::size_t used);  // weights, buffers and modes of the main module
  void share(Replica& replica) const;
  Tensors trained(std::size_t device) const;  // parameters
  std::vector<at::Tensor> forward(const std::vector<ItemRange>& shares, const LossOf& loss_of);
  at::Tensor with_gradients(const std::vector<at::Tensor>& losses,
                            const std::vector<double>& weights);
  // Of the trained parameters, weighted, over all devices; undefined: none has used it.
  Tensors sum(std::vector<Tensors> gradients, const std::vector<double>& weights);
  void add_together(std::vector<Tensors>& gradients, const std::vector<std::size_t>& which,
                    const std::vector<double>& weights, Tensors& sums);

  torch::nn::Module& main_;
  std::vector<c10::Device> devices_;
  Tensors tensors_;             // of the main module; tied parameters once
  std::size_t parameters_ = 0;  // how many of them are parameters
  std::vector<Replica> replicas_;
  std::uint64_t least_;  // samples for a device
  bool on_one_generator_;
  bool in_turn_;  // forward passes draw from one generator
  DeviceThreads threads_;
};

// Several devices of one process train one model, each on its share of every batch, as in
// DataParallel. The first device uses the program's model. Each other device has a replica of it
// and a thread of its own. On the CPU replicas share the memory of the weights. On a GPU they get a
// copy in every step: one for each dtype, as their gradients come back in one sum for each dtype.
//
//   dpwa::DeviceReplicas<Net> replicas(*model, {c10::kCPU, c10::kCPU}, [] { return make_net(); });
//   auto loss = replicas.loss(batch_size, [&](Net& net, c10::Device device, const ItemRange& part)
//   {
//     return loss of the samples part.from to part.end(), a mean, by `net`;
//   });
//   loss.backward();
//
// loss() computes the gradients of all devices and their mean; device k has the weight b_k / B.
// backward() then writes that mean to .grad of the model, through its hooks. So it can be scaled,
// accumulated and averaged over the network like a gradient that the model has computed alone.
// Parameters that no device used get no gradient.
//
// Uses as few devices as finish a batch as fast as all would (device_shares). With BatchNorm every
// device gets at least two samples, and normalises with the statistics of its own share. Buffers,
// such as running statistics, are those of the first device.
//
// If CPU devices share a random generator, forward passes that use it (dropout) run one after the
// other, so that a run can be repeated. The first pass always does, to find out.
//
// The model and everything that `loss_of` uses must outlive this object. One (training) thread. The
// model may be given to make_adapter before or after.
template <typename Model>
class DeviceReplicas {
 public:
  // The mean loss of the samples `part` of the batch, a scalar, by the model of that device. Called
  // on several threads at once.
  using LossOf = std::function<at::Tensor(Model& model, c10::Device device, const ItemRange& part)>;

  // `devices`: at least one; the first is that of `model`. `make` returns a model of that shape,
  // with any weights. Throws std::invalid_argument if the shape differs. `host_weights`: copied, to
  // try on the CPU what a GPU does.
  DeviceReplicas(Model& model, const std::vector<c10::Device>& devices,
                 const std::function<std::shared_ptr<Model>()>& make,
                 HostWeights host_weights = HostWeights::shared)
      : model_(model),
        replicas_(make_replicas(devices, make)),
        group_(model, devices, as_modules(), host_weights) {}

  // The loss of a batch of that size, at least 1. Throws what loss_of throws.
  at::Tensor loss(std::uint64_t batch_size, const LossOf& loss_of) {
    return group_.loss(batch_size, [&](std::size_t device, const ItemRange& part) {
      return loss_of(device == 0 ? model_ : *replicas_[device - 1], group_.device(device), part);
    });
  }

  std::size_t size() const { return group_.size(); }

 private:
  using Models = std::vector<std::shared_ptr<Model>>;

  static Models make_replicas(const std::vector<c10::Device>& devices,
                              const std::function<std::shared_ptr<Model>()>& make);
  std::vector<std::shared_ptr<torch::nn::Module>> as_modules() const {
    return {replicas_.begin(), replicas_.end()};
  }

  Model& model_;
  Models replicas_;
  ReplicaGroup group_;
};

// Restores the states of the default random generators of the CPU and of these devices at its end.
class KeptGenerators {
 public:
  explicit KeptGenerators(const std::vector<c10::Device>& devices);
  ~KeptGenerators();
  KeptGenerators(const KeptGenerators&) = delete;
  KeptGenerators& operator=(const KeptGenerators&) = delete;

 private:
  std::vector<c10::Device> devices_;  // each once
  std::vector<at::Tensor> states_;
};

template <typename Model>
typename DeviceReplicas<Model>::Models DeviceReplicas<Model>::make_replicas(
    const std::vector<c10::Device>& devices, const std::function<std::shared_ptr<Model>()>& make) {
  const KeptGenerators kept(devices);
  Models models;
  for (std::size_t i = 1; i < devices.size(); ++i) {
    models.push_back(make());
    models.back()->to(devices[i]);
  }
  return models;
}

}  // namespace dpwa
