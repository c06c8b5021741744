#include "adapters/parallel/device_replicas.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "adapters/common/batch_norm.h"
#include "adapters/common/training_state.h"
#include "adapters/parallel/device_vectors.h"

namespace dpwa {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Computed {
  at::Tensor loss;
  std::vector<at::Tensor> gradients;
};

// A loss whose gradients are known already: its backward pass hands them to the parameters.
class KnownGradients : public torch::autograd::Function<KnownGradients> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList /*parameters*/,
                            const std::shared_ptr<Computed>& computed) {
    context->saved_data["gradients"] = std::exchange(computed->gradients, {});
    return computed->loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& of_loss) {
    const auto found = context->saved_data.find("gradients");
    if (found == context->saved_data.end())
      throw std::logic_error("a second backward pass of one loss of DeviceReplicas");
    variable_list gradients;
    {
      const c10::IValue kept = std::move(found->second);
      context->saved_data.clear();
      gradients = kept.toTensorVector();
    }
    const at::Tensor& scale = of_loss.front();
    if (!scale.is_cpu() || scale.item<double>() != 1) {
      for (at::Tensor& gradient : gradients) gradient = gradient * scale;
    }
    gradients.emplace_back();  // of `computed`
    return gradients;
  }
};

std::vector<at::Tensor> vectors_of(const std::vector<FlatTensors*>& copies, std::size_t dtype) {
  std::vector<at::Tensor> vectors;
  for (FlatTensors* copy : copies) vectors.push_back(copy->vectors()[dtype]);
  return vectors;
}

at::Tensor state_of_generator(c10::Device device = c10::kCPU) {
  auto generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

}  // namespace

KeptGenerators::KeptGenerators(const std::vector<c10::Device>& devices) : devices_{c10::kCPU} {
  for (const c10::Device device : devices)
    if (!device.is_cpu() && std::ranges::count(devices_, device) == 0) devices_.push_back(device);
  for (const c10::Device device : devices_) states_.push_back(state_of_generator(device));
}

KeptGenerators::~KeptGenerators() {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    auto generator = at::globalContext().defaultGenerator(devices_[i]);
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(states_[i]);
  }
}

ReplicaGroup::ReplicaGroup(torch::nn::Module& main, std::vector<c10::Device> devices,
                           std::vector<std::shared_ptr<torch::nn::Module>> replicas,
                           HostWeights host_weights)
    : main_(main),
      devices_(std::move(devices)),
      least_(normalises_batches(main) ? 2 : 1),
      on_one_generator_(std::ranges::count_if(devices_, [](auto d) { return d.is_cpu(); }) > 1),
      in_turn_(on_one_generator_),
      threads_(devices_.size()) {
  if (devices_.empty()) throw std::invalid_argument("DeviceReplicas: no devices");
  for (auto& module : replicas) replicas_.push_back({std::move(module), {}, {}});
  pair_up([](const torch::nn::Module& module) { return module.parameters(); }, "parameters");
  parameters_ = tensors_.size();
  pair_up([](const torch::nn::Module& module) { return module.buffers(); }, "buffers");
  const at::NoGradGuard no_grad;
  for (std::size_t k = 0; k < replicas_.size(); ++k) {
    Replica& replica = replicas_[k];
    const bool in_host_memory = devices_[0].is_cpu() && devices_[k + 1].is_cpu();
    if (in_host_memory && host_weights == HostWeights::shared) continue;
    replica.copies.emplace(replica.tensors, tensors_, devices_[k + 1]);
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      replica.tensors[i].set_data(replica.copies->view(i));
  }
}

void ReplicaGroup::pair_up(Tensors (*tensors_of)(const torch::nn::Module&), const char* what) {
  const Tensors main = tensors_of(main_);
  std::vector<Tensors> others;
  for (const Replica& replica : replicas_) {
    others.push_back(tensors_of(*replica.module));
    if (others.back().size() != main.size())
      throw std::invalid_argument(std::string("DeviceReplicas: a replica has ") +
                                  std::to_string(others.back().size()) + " " + what +
                                  ", the model " + std::to_string(main.size()));
  }
  for (std::size_t i = 0; i < main.size(); ++i) {
    for (const Tensors& other : others) {
      if (other[i].sizes() != main[i].sizes() || other[i].dtype() != main[i].dtype())
        throw std::invalid_argument(std::string("DeviceReplicas: a replica has ") + what +
                                    " of another shape or type than the model");
    }
    if (std::ranges::any_of(tensors_, [&](const auto& known) { return known.is_same(main[i]); }))
      continue;
    tensors_.push_back(main[i]);
    for (std::size_t k = 0; k < replicas_.size(); ++k) replicas_[k].tensors.push_back(others[k][i]);
  }
}

void ReplicaGroup::share(Replica& replica) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    at::Tensor& tensor = replica.tensors[i];
    if (i >= parameters_) {
      tensor.copy_(tensors_[i]);  // each pass writes its own
    } else if (tensor.const_data_ptr() != tensors_[i].const_data_ptr()) {
      tensor.set_data(tensors_[i].detach());  // an adapter may have moved it
    }
  }
}

void ReplicaGroup::give_out(std::size_t used) {
  const at::NoGradGuard no_grad;
  const TrainingModes modes(main_);
  std::vector<FlatTensors*> copies;
  const Tensors* like = nullptr;
  for (std::size_t k = 0; k + 1 < used; ++k) {
    Replica& replica = replicas_[k];
    if (replica.copies) {
      copies.push_back(&*replica.copies);
      like = &replica.tensors;
    } else {
      share(replica);
    }
    for (std::size_t i = 0; i < parameters_; ++i)
      replica.tensors[i].set_requires_grad(tensors_[i].requires_grad());
    modes.give_to(*replica.module);
  }
  if (like == nullptr) return;
  FlatTensors outgoing(tensors_, *like, devices_[0]);
  copies.insert(copies.begin(), &outgoing);
  for (std::size_t dtype = 0; dtype < outgoing.vectors().size(); ++dtype) {
    Tensors vectors = vectors_of(copies, dtype);
    broadcast(vectors);
  }
}

std::vector<at::Tensor> ReplicaGroup::forward(const std::vector<ItemRange>& shares,
                                              const LossOf& loss_of) {
  std::vector<at::Tensor> losses(shares.size());
  const auto one = [&](std::size_t device) {
    const c10::DeviceGuard guard(devices_[device]);
    losses[device] = loss_of(device, shares[device]);
  };
  if (!on_one_generator_ || shares.size() == 1) {
    threads_.at_once(shares.size(), one);
    return losses;
  }
  const at::Tensor before = state_of_generator();
  if (in_turn_) {
    threads_.in_turn(shares.size(), one);
  } else {
    threads_.at_once(shares.size(), one);
  }
  in_turn_ = !at::equal(before, state_of_generator());
  return losses;
}

ReplicaGroup::Tensors ReplicaGroup::trained(std::size_t device) const {
  const Tensors& own = device == 0 ? tensors_ : replicas_[device - 1].tensors;
  Tensors chosen;
  for (std::size_t i = 0; i < parameters_; ++i)
    if (tensors_[i].requires_grad()) chosen.push_back(own[i]);
  return chosen;
}

ReplicaGroup::Tensors ReplicaGroup::sum(std::vector<Tensors> gradients,
                                        const std::vector<double>& weights) {
  if (gradients.size() == 1) return gradients[0];
  const bool apart =
      std::ranges::any_of(replicas_, [](const auto& one) { return one.copies.has_value(); });
  Tensors sums(gradients[0].size());
  std::vector<std::size_t> together;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto used = [i](const Tensors& one) { return one[i].defined(); };
    const auto sparse = [i](const Tensors& one) {
      return one[i].defined() && one[i].layout() != at::kStrided;
    };
    if (std::ranges::none_of(gradients, used)) continue;
    if (apart && std::ranges::none_of(gradients, sparse)) {
      together.push_back(i);
      continue;
    }
    for (std::size_t device = 0; device < gradients.size(); ++device) {
      const at::Tensor gradient = std::move(gradients[device][i]);
      if (!gradient.defined()) continue;
      if (sums[i].defined()) {
        sums[i].add_(gradient.to(devices_[0]), weights[device]);
      } else {
        sums[i] = gradient.to(devices_[0]) * weights[device];
      }
    }
  }
  if (!together.empty()) add_together(gradients, together, weights, sums);
  return sums;
}

void ReplicaGroup::add_together(std::vector<Tensors>& gradients,
                                const std::vector<std::size_t>& which,
                                const std::vector<double>& weights, Tensors& sums) {
  const Tensors parameters = trained(0);
  Tensors like;
  for (const std::size_t i : which) like.push_back(parameters[i]);
  std::vector<std::optional<FlatTensors>> parts(gradients.size());
  threads_.at_once(gradients.size(), [&](std::size_t device) {
    const c10::DeviceGuard guard(devices_[device]);
    Tensors chosen;
    for (const std::size_t i : which) chosen.push_back(std::move(gradients[device][i]));
    parts[device].emplace(chosen, like, devices_[device]);
  });
  std::vector<FlatTensors*> all;
  for (auto& part : parts) all.push_back(&*part);
  FlatTensors& total = *parts[0];
  for (std::size_t dtype = 0; dtype < total.vectors().size(); ++dtype) {
    Tensors vectors = vectors_of(all, dtype);
    add_weighted(vectors, weights);
  }
  for (std::size_t i = 0; i < which.size(); ++i) sums[which[i]] = total.view(i);
}

at::Tensor ReplicaGroup::with_gradients(const std::vector<at::Tensor>& losses,
                                        const std::vector<double>& weights) {
  auto computed = std::make_shared<Computed>();
  {
    const at::NoGradGuard no_grad;
    computed->loss = losses[0].detach() * weights[0];
    for (std::size_t k = 1; k < losses.size(); ++k)
      computed->loss += losses[k].detach().to(devices_[0]) * weights[k];
  }
  if (!at::GradMode::is_enabled()) return computed->loss;

  std::vector<Tensors> gradients(losses.size());
  threads_.at_once(losses.size(), [&](std::size_t device) {
    const c10::DeviceGuard guard(devices_[device]);
    gradients[device] = torch::autograd::grad({losses[device]}, trained(device),
                                              /*grad_outputs=*/{}, /*retain_graph=*/std::nullopt,
                                              /*create_graph=*/false, /*allow_unused=*/true);
  });
  const at::NoGradGuard no_grad;
  const Tensors sums = sum(std::move(gradients), weights);
  const Tensors parameters = trained(0);
  Tensors used;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!sums[i].defined()) continue;
    used.push_back(parameters[i]);
    computed->gradients.push_back(sums[i]);
  }
  const at::AutoGradMode grad(true);
  return KnownGradients::apply(at::TensorList(used), computed);
}

at::Tensor ReplicaGroup::loss(std::uint64_t batch_size, const LossOf& loss_of) {
  if (batch_size == 0) throw std::invalid_argument("DeviceReplicas: an empty batch");
  const std::vector<ItemRange> shares = device_shares(batch_size, devices_.size(), least_);
  std::vector<double> weights;
  for (const ItemRange& share : shares)
    weights.push_back(static_cast<double>(share.count) / static_cast<double>(batch_size));
  give_out(shares.size());
  return with_gradients(forward(shares, loss_of), weights);
}

}  // namespace dpwa
