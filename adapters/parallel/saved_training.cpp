#include "adapters/parallel/saved_training.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <mutex>

namespace dpwa {
namespace {

std::vector<at::Tensor> values_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> values = module.parameters();
  for (const auto& buffer : module.buffers()) values.push_back(buffer);
  return values;
}

}  // namespace

SavedTraining::SavedTraining(torch::nn::Module& module, torch::optim::Optimizer& optimizer)
    : module_(module), optimizer_(optimizer), modes_(module) {
  const at::NoGradGuard no_grad;
  for (const auto& value : values_of(module_)) values_.push_back(value.detach().clone());
  for (const auto& parameter : module_.parameters()) {
    const at::Tensor& gradient = parameter.grad();
    gradients_.push_back(gradient.defined() ? gradient.detach().clone() : at::Tensor());
  }
  optimizer_state_ = saved_state(optimizer_);
  const auto add = [this](c10::Device device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::scoped_lock lock(generator.mutex());
    generators_.push_back({generator, generator.get_state()});
  };
  add(c10::kCPU);
  for (const auto& parameter : module_.parameters()) {
    if (parameter.is_cpu()) continue;
    add(parameter.device());
    break;
  }
}

void SavedTraining::restore() const {
  const at::NoGradGuard no_grad;
  const auto values = values_of(module_);
  for (std::size_t i = 0; i < values.size(); ++i) values[i].detach().copy_(values_[i]);
  auto parameters = module_.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].mutable_grad() = gradients_[i].defined() ? gradients_[i].clone() : at::Tensor();
  modes_.give_to(module_);
  load_state(optimizer_, optimizer_state_);
  for (const Generator& one : generators_) {
    at::Generator generator = one.generator;
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(one.state);
  }
}

}  // namespace dpwa
