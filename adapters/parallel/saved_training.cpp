#include "adapters/parallel/saved_training.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize.h>

#include <mutex>
#include <sstream>

namespace dpwa {
namespace {

std::vector<at::Tensor> values_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> values = module.parameters();
  for (const auto& buffer : module.buffers()) values.push_back(buffer);
  return values;
}

// Outer parts first, because train() of a part also sets the parts in it.
std::vector<torch::nn::Module*> parts_of(torch::nn::Module& module) {
  std::vector<torch::nn::Module*> parts{&module};
  for (const auto& one : module.modules(/*include_self=*/false)) parts.push_back(one.get());
  return parts;
}

}  // namespace

TrainingModes::TrainingModes(torch::nn::Module& module) {
  for (const torch::nn::Module* one : parts_of(module)) modes_.push_back(one->is_training());
}

void TrainingModes::give_to(torch::nn::Module& module) const {
  const auto parts = parts_of(module);
  for (std::size_t i = 0; i < parts.size() && i < modes_.size(); ++i)
    if (parts[i]->is_training() != modes_[i]) parts[i]->train(modes_[i]);
}

SavedTraining::SavedTraining(torch::nn::Module& module, torch::optim::Optimizer& optimizer)
    : module_(module), optimizer_(optimizer), modes_(module) {
  const at::NoGradGuard no_grad;
  for (const auto& value : values_of(module_)) values_.push_back(value.detach().clone());
  for (const auto& parameter : module_.parameters()) {
    const at::Tensor& gradient = parameter.grad();
    gradients_.push_back(gradient.defined() ? gradient.detach().clone() : at::Tensor());
  }
  std::ostringstream out;
  torch::serialize::OutputArchive archive;
  optimizer_.save(archive);
  archive.save_to(out);
  optimizer_state_ = out.str();
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
  optimizer_.state().clear();  // loading adds to what is there
  std::istringstream in(optimizer_state_);
  torch::serialize::InputArchive archive;
  archive.load_from(in);
  optimizer_.load(archive);
  for (const Generator& one : generators_) {
    at::Generator generator = one.generator;
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(one.state);
  }
}

}  // namespace dpwa
