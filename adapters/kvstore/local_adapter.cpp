#include "adapters/kvstore/local_adapter.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <utility>

#include "adapters/common/module_tensors.h"
#include "adapters/kvstore/torch_states.h"
#include "adapters/kvstore/torch_values.h"
#include "dpwa/config/open_log.h"
#include "dpwa/kvstore/saved_states.h"
#include "dpwa/log/log.h"
#include "dpwa/rules/progress.h"

namespace dpwa {

using namespace kvstore;

namespace {

SavedRange whole(const std::string& name, const at::Tensor& parameter, OptimizerState state) {
  const ItemRange all{0, static_cast<std::uint64_t>(parameter.numel())};
  return {name, *to_dtype(parameter.scalar_type()), all, std::move(state)};
}

}  // namespace

LocalKvstoreAdapter::LocalKvstoreAdapter(const Config& config, torch::nn::Module& model)
    : flat_(model),
      type_(local_type_on(flat_.device(), config.kvstore.type)),
      compression_(config.kvstore.compression),
      trained_(trained_parameters(model)) {
  for (const auto& [name, parameter] : trained_) written_.add(parameter);
}

void LocalKvstoreAdapter::start() {
  running_ = true;
}

// With the state that the optimizer has, of a checkpoint or of earlier steps.
void LocalKvstoreAdapter::make_stores(const torch::optim::Optimizer& optimizer,
                                      const std::vector<OptimizerOptions>& options) {
  stores_.assign(options.size(), LocalStore(type_));
  for (std::size_t group = 0; group < options.size(); ++group) {
    stores_[group].set_compression(compression_);
    stores_[group].set_optimizer(options[group]);
  }
  std::vector<at::Tensor> parameters;
  for (const auto& [name, parameter] : trained_) parameters.push_back(parameter);
  const TorchOptimizer own(optimizer, parameters);
  const auto group_of = groups_of(optimizer);
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    const auto& [name, parameter] = trained_[i];
    const auto group = group_of.find(parameter.unsafeGetTensorImpl());
    if (group == group_of.end()) continue;
    LocalStore& store = stores_[group->second];
    store.init({{name, {parameter}}});
    const OptimizerState state = own.state(i, options[group->second], /*used=*/false);
    if (state.steps() == 0 || parameter.numel() == 0) continue;
    store.load({options[group->second], {whole(name, parameter, state)}});
  }
}

bool LocalKvstoreAdapter::take_optimizer_state(torch::optim::Optimizer& optimizer) {
  if (!in_store() || stores_.empty()) return true;
  try {
    const auto options = kvstore::options_of(optimizer);
    const auto group_of = groups_of(optimizer);
    std::vector<SavedStates> states;
    for (LocalStore& store : stores_) states.push_back(store.states());
    for (const auto& [name, parameter] : trained_) {
      const auto group = group_of.find(parameter.unsafeGetTensorImpl());
      if (group == group_of.end() || parameter.numel() == 0) continue;
      const auto is_own = [&](const SavedRange& range) { return range.key == Key(name); };
      const auto saved = std::ranges::find_if(states, [&](const SavedStates& each) {
        return std::ranges::any_of(each.ranges, is_own);
      });
      // No update so far, or by another kind of optimizer.
      if (saved == states.end() || saved->options.kind != options[group->second].kind) continue;
      const SavedRange all = whole(name, parameter, {});
      give_state(optimizer, parameter, saved->options,
                 state_of_range(*saved, name, all.dtype, all.elements));
    }
    return true;
  } catch (const KVStoreError& error) {
    optimizer.state().clear();
    log(LogLevel::warn, "kvstore",
        std::string("cannot take the optimizer's state from the store: ") + error.what());
    return false;
  }
}

// The program may have written the model's weights, or have other groups: then new stores begin
// with these, and with the optimizer's state.
void LocalKvstoreAdapter::update(torch::optim::Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  const auto options = kvstore::options_of(optimizer);
  const auto group_of = groups_of(optimizer);
  const auto is_new = [&](const auto& each) {
    const auto group = group_of.find(each.second.unsafeGetTensorImpl());
    return group != group_of.end() && !stores_[group->second].has(each.first);
  };
  if (written_.first() || stores_.size() != options.size() ||
      std::ranges::any_of(trained_, is_new)) {
    take_optimizer_state(optimizer);
    make_stores(optimizer, options);
  }
  for (std::size_t group = 0; group < options.size(); ++group)
    stores_[group].set_optimizer(options[group]);
  for (const auto& [name, parameter] : trained_) {
    const auto group = group_of.find(parameter.unsafeGetTensorImpl());
    if (group == group_of.end() || !parameter.grad().defined()) continue;
    LocalStore& store = stores_[group->second];
    store.push({{name, {parameter.grad()}}}, 0)->wait();
    store.pull({{name, {parameter}}}, 0)->wait();
  }
  written_.know();
}

void LocalKvstoreAdapter::pass_gradients() {
  const at::NoGradGuard no_grad;
  passed_ = true;
  if (stores_.empty()) {
    stores_.emplace_back(type_).set_compression(compression_);
    for (const auto& [name, parameter] : trained_)
      stores_.front().init({{name, {at::zeros_like(parameter)}}});
  }
  for (const auto& [name, parameter] : trained_) {
    at::Tensor& gradient = parameter.mutable_grad();
    if (!gradient.defined()) continue;
    stores_.front().push({{name, {gradient}}}, 0)->wait();
    if (gradient.layout() != at::kStrided) gradient = at::zeros_like(parameter);
    stores_.front().pull({{name, {gradient}}}, 0)->wait();
  }
}

void LocalKvstoreAdapter::average_gradients() {
  if (running_ && !in_store() && !passed_) pass_gradients();
}

StepReport LocalKvstoreAdapter::step(torch::optim::Optimizer& optimizer, const torch::Tensor&) {
  flat_.check();
  if (running_ && in_store()) {
    update(optimizer);
  } else {
    average_gradients();
    optimizer.step();
  }
  state_.clock = clock_after_publish(state_.clock);
  return end_step();
}

StepReport LocalKvstoreAdapter::skip_step(torch::optim::Optimizer&, const torch::Tensor&) {
  flat_.check();
  average_gradients();
  return end_step();
}

void LocalKvstoreAdapter::update_send(const torch::Tensor&) {
  flat_.check();
  average_gradients();
  state_.clock = clock_after_publish(state_.clock);
}

StepReport LocalKvstoreAdapter::update_wait(const torch::Tensor&) {
  if (in_store()) stores_.clear();  // the program has made the step: its weights are newer
  return end_step();
}

StepReport LocalKvstoreAdapter::end_step() {
  passed_ = false;
  StepReport report;
  report.clock = state_.clock;
  return report;
}

void LocalKvstoreAdapter::reload(const Config& fresh) {
  reload_log(fresh, Backend::kvstore);
}

FinishReport LocalKvstoreAdapter::finish() {
  leave();
  return {};
}

void LocalKvstoreAdapter::leave() {
  running_ = false;
}

}  // namespace dpwa
