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
#include "adapters/parallel/saved_training.h"

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

at::Tensor state_of_generator() {
  auto generator = at::globalContext().defaultGenerator(c10::kCPU);
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

}  // namespace

KeptGenerator::KeptGenerator() : state_(state_of_generator()) {}

KeptGenerator::~KeptGenerator() {
  auto generator = at::globalContext().defaultGenerator(c10::kCPU);
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state_);
}

ReplicaGroup::ReplicaGroup(torch::nn::Module& main, std::vector<c10::Device> devices,
                           std::vector<std::shared_ptr<torch::nn::Module>> replicas)
    : main_(main),
      devices_(std::move(devices)),
      replicas_(std::move(replicas)),
      least_(has_batch_norm(main) ? 2 : 1),
      on_one_generator_(std::ranges::count_if(devices_, [](auto d) { return d.is_cpu(); }) > 1),
      in_turn_(on_one_generator_),
      threads_(devices_.size()) {
  if (devices_.empty()) throw std::invalid_argument("DeviceReplicas: no devices");
  const auto pair_up = [this](std::vector<Tensors>& all, const auto& tensors_of, const char* what) {
    for (const auto& tensor : tensors_of(main_)) all.push_back({tensor, {}});
    for (const auto& replica : replicas_) {
      const auto tensors = tensors_of(*replica);
      if (tensors.size() != all.size())
        throw std::invalid_argument(std::string("DeviceReplicas: a replica has ") +
                                    std::to_string(tensors.size()) + " " + what + ", the model " +
                                    std::to_string(all.size()));
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].sizes() != all[i].main.sizes() || tensors[i].dtype() != all[i].main.dtype())
          throw std::invalid_argument(std::string("DeviceReplicas: a replica has ") + what +
                                      " of another shape or type than the model");
        all[i].replicas.push_back(tensors[i]);
      }
    }
  };
  std::vector<Tensors> parameters;
  pair_up(parameters, [](const auto& module) { return module.parameters(); }, "parameters");
  pair_up(buffers_, [](const auto& module) { return module.buffers(); }, "buffers");
  for (Tensors& one : parameters) {
    const bool known = std::ranges::any_of(
        parameters_, [&](const Tensors& other) { return other.main.is_same(one.main); });
    if (!known) parameters_.push_back(std::move(one));
  }
}

void ReplicaGroup::give_out(std::size_t used) {
  const at::NoGradGuard no_grad;
  const TrainingModes modes(main_);
  for (std::size_t k = 0; k + 1 < used; ++k) {
    for (Tensors& one : parameters_) {
      at::Tensor& replica = one.replicas[k];
      if (!devices_[k + 1].is_cpu() || !one.main.is_cpu()) {
        replica.copy_(one.main, /*non_blocking=*/true);
      } else if (replica.const_data_ptr() != one.main.const_data_ptr()) {
        replica.set_data(one.main.detach());  // one memory: an adapter may have moved it
      }
      replica.set_requires_grad(one.main.requires_grad());
    }
    for (Tensors& one : buffers_) one.replicas[k].copy_(one.main, /*non_blocking=*/true);
    modes.give_to(*replicas_[k]);
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

at::Tensor ReplicaGroup::with_gradients(const std::vector<at::Tensor>& losses,
                                        const std::vector<ItemRange>& shares,
                                        std::uint64_t batch_size) {
  const auto weight = [&](std::size_t device) {
    return static_cast<double>(shares[device].count) / static_cast<double>(batch_size);
  };
  auto computed = std::make_shared<Computed>();
  {
    const at::NoGradGuard no_grad;
    computed->loss = losses[0].detach() * weight(0);
    for (std::size_t k = 1; k < losses.size(); ++k)
      computed->loss += losses[k].detach().to(devices_[0]) * weight(k);
  }
  if (!at::GradMode::is_enabled()) return computed->loss;

  std::vector<Tensors*> trained;
  for (Tensors& one : parameters_)
    if (one.main.requires_grad()) trained.push_back(&one);
  std::vector<variable_list> gradients(losses.size());
  threads_.at_once(losses.size(), [&](std::size_t device) {
    const c10::DeviceGuard guard(devices_[device]);
    variable_list inputs;
    for (const Tensors* one : trained)
      inputs.push_back(device == 0 ? one->main : one->replicas[device - 1]);
    gradients[device] = torch::autograd::grad({losses[device]}, inputs, /*grad_outputs=*/{},
                                              /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                                              /*allow_unused=*/true);
  });
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> used;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    at::Tensor sum;
    for (std::size_t device = 0; device < losses.size(); ++device) {
      const at::Tensor gradient = std::exchange(gradients[device][i], {});
      if (!gradient.defined()) continue;
      if (!sum.defined()) {
        sum = losses.size() == 1 ? gradient : gradient.to(devices_[0]) * weight(device);
      } else {
        sum.add_(gradient.to(devices_[0]), weight(device));
      }
    }
    if (!sum.defined()) continue;
    used.push_back(trained[i]->main);
    computed->gradients.push_back(std::move(sum));
  }
  const at::AutoGradMode grad(true);
  return KnownGradients::apply(at::TensorList(used), computed);
}

at::Tensor ReplicaGroup::loss(std::uint64_t batch_size, const LossOf& loss_of) {
  if (batch_size == 0) throw std::invalid_argument("DeviceReplicas: an empty batch");
  const std::vector<ItemRange> shares = device_shares(batch_size, devices_.size(), least_);
  give_out(shares.size());
  return with_gradients(forward(shares, loss_of), shares, batch_size);
}

}  // namespace dpwa
