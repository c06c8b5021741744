#include "adapters/kvstore/optimizer_terms.h"

#include <torch/optim/optimizer.h>

#include "adapters/kvstore/torch_states.h"
#include "adapters/kvstore/torch_values.h"

namespace dpwa::kvstore {

std::unordered_map<const void*, std::size_t> groups_of(const torch::optim::Optimizer& optimizer) {
  std::unordered_map<const void*, std::size_t> group_of;
  for (std::size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    for (const at::Tensor& tensor : optimizer.param_groups()[group].params())
      group_of[tensor.unsafeGetTensorImpl()] = group;
  }
  return group_of;
}

OptimizerTerms::OptimizerTerms(const torch::optim::Optimizer& optimizer,
                               const std::vector<at::Tensor>& parameters) {
  for (const OptimizerOptions& options : options_of(optimizer)) {
    const OptionsBytes form = encode(options);
    groups_.emplace_back(form.begin(), form.end());
  }
  const auto groups = groups_of(optimizer);
  for (const at::Tensor& parameter : parameters) {
    const auto found = groups.find(parameter.unsafeGetTensorImpl());
    group_of_.push_back(found == groups.end() ? std::nullopt : std::optional(found->second));
  }
}

const Bytes* OptimizerTerms::of(std::size_t index) const {
  const auto group = group_of_[index];
  return group ? &groups_[*group] : nullptr;
}

OptimizerCopy::OptimizerCopy(const torch::optim::Optimizer& optimizer,
                             const std::vector<at::Tensor>& parameters)
    : parameters_(parameters) {
  try {
    terms_ = OptimizerTerms(optimizer, parameters);
  } catch (const KVStoreError&) {
    unknown_ = std::current_exception();
    return;
  }
  for (const at::Tensor& parameter : parameters) {
    const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
    states_.push_back(found == optimizer.state().end() ? nullptr : found->second->clone());
  }
}

OptimizerCopy::~OptimizerCopy() = default;
OptimizerCopy::OptimizerCopy(OptimizerCopy&&) noexcept = default;
OptimizerCopy& OptimizerCopy::operator=(OptimizerCopy&&) noexcept = default;

std::optional<KeyState> OptimizerCopy::state(std::size_t index, bool used) const {
  if (unknown_) std::rethrow_exception(unknown_);
  const Bytes* form = terms_.of(index);
  if (form == nullptr) return std::nullopt;
  const auto options = decode_options(*form);
  return KeyState{*options, state_of(states_[index].get(), parameters_[index], *options, used)};
}

}  // namespace dpwa::kvstore
