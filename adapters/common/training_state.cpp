#include "adapters/common/training_state.h"

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize.h>

#include <algorithm>
#include <sstream>

namespace dpwa {

std::vector<torch::nn::Module*> parts_of(torch::nn::Module& module) {
  std::vector<torch::nn::Module*> parts{&module};
  for (const auto& one : module.modules(/*include_self=*/false))
    if (std::ranges::find(parts, one.get()) == parts.end()) parts.push_back(one.get());
  return parts;
}

TrainingModes::TrainingModes(torch::nn::Module& module) {
  for (const torch::nn::Module* one : parts_of(module)) modes_.push_back(one->is_training());
}

void TrainingModes::give_to(torch::nn::Module& module) const {
  const auto parts = parts_of(module);
  for (std::size_t i = 0; i < parts.size() && i < modes_.size(); ++i)
    if (parts[i]->is_training() != modes_[i]) parts[i]->train(modes_[i]);
}

EvaluationMode::EvaluationMode(torch::nn::Module& module) : module_(module), before_(module) {
  module_.eval();
}

std::string saved_state(const torch::optim::Optimizer& optimizer) {
  std::ostringstream out;
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  archive.save_to(out);
  return out.str();
}

void load_state(torch::optim::Optimizer& optimizer, const std::string& state) {
  optimizer.state().clear();  // loading adds to what is there
  std::istringstream in(state);
  torch::serialize::InputArchive archive;
  // It may come from a process that trains on another GPU.
  const auto& groups = optimizer.param_groups();
  const bool empty = groups.empty() || groups.front().params().empty();
  archive.load_from(in, empty ? at::Device(at::kCPU) : groups.front().params().front().device());
  optimizer.load(archive);
}

}  // namespace dpwa
