#include "adapters/kvstore/torch_optimizer.h"

#include <torch/optim/optimizer.h>

#include <exception>
#include <optional>

#include "adapters/kvstore/torch_states.h"
#include "adapters/kvstore/torch_values.h"

namespace dpwa::kvstore {
namespace {

using torch::optim::OptimizerParamState;

class KeptContent final : public OptimizerContent {
 public:
  KeptContent(const torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& trained)
      : trained_(trained) {
    try {
      terms_ = TorchOptimizer(optimizer, trained).terms();
    } catch (const KVStoreError&) {
      unknown_ = std::current_exception();
      return;
    }
    for (const at::Tensor& parameter : trained) {
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      states_.push_back(found == optimizer.state().end() ? nullptr : found->second->clone());
    }
  }

  OptimizerTerms terms() const override {
    if (unknown_) std::rethrow_exception(unknown_);
    return terms_;
  }
  OptimizerState state(std::size_t trained, const OptimizerOptions& options,
                       bool used) const override {
    return state_of(states_[trained].get(), trained_[trained], options, used);
  }

 private:
  OptimizerTerms terms_;
  std::exception_ptr unknown_;
  std::vector<at::Tensor> trained_;
  std::vector<std::unique_ptr<OptimizerParamState>> states_;  // by parameter; null
};

}  // namespace

std::unordered_map<const void*, std::size_t> groups_of(const torch::optim::Optimizer& optimizer) {
  std::unordered_map<const void*, std::size_t> group_of;
  for (std::size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    for (const at::Tensor& tensor : optimizer.param_groups()[group].params())
      group_of[tensor.unsafeGetTensorImpl()] = group;
  }
  return group_of;
}

TorchOptimizer::TorchOptimizer(const torch::optim::Optimizer& optimizer,
                               const std::vector<at::Tensor>& trained)
    : optimizer_(const_cast<torch::optim::Optimizer&>(optimizer)), trained_(trained) {}

OptimizerTerms TorchOptimizer::terms() const {
  OptimizerTerms terms;
  for (const OptimizerOptions& options : options_of(optimizer_)) {
    const OptionsBytes form = encode(options);
    terms.groups.emplace_back(form.begin(), form.end());
  }
  const auto groups = groups_of(optimizer_);
  for (const at::Tensor& parameter : trained_) {
    const auto found = groups.find(parameter.unsafeGetTensorImpl());
    terms.group_of.push_back(found == groups.end() ? std::nullopt : std::optional(found->second));
  }
  return terms;
}

OptimizerState TorchOptimizer::state(std::size_t trained, const OptimizerOptions& options,
                                     bool used) const {
  const auto& states = optimizer_.state();
  const auto found = states.find(trained_[trained].unsafeGetTensorImpl());
  return state_of(found == states.end() ? nullptr : found->second.get(), trained_[trained], options,
                  used);
}

void TorchOptimizer::step() {
  optimizer_.step();
}

std::vector<const void*> TorchOptimizer::stepped() const {
  std::vector<const void*> all;
  for (const auto& group : optimizer_.param_groups())
    for (const at::Tensor& parameter : group.params())
      all.push_back(parameter.unsafeGetTensorImpl());
  return all;
}

std::unique_ptr<OptimizerContent> TorchOptimizer::copy() const {
  return std::make_unique<KeptContent>(optimizer_, trained_);
}

void TorchOptimizer::give(std::size_t trained, const OptimizerOptions& options,
                          const OptimizerState& state) {
  give_state(optimizer_, trained_[trained], options, state);
}

void TorchOptimizer::forget() {
  optimizer_.state().clear();
}

}  // namespace dpwa::kvstore
