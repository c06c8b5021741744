#include "adapters/kvstore/local_adapter.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/optimizer.h>

#include <unordered_map>
#include <unordered_set>

#include "adapters/kvstore/torch_values.h"
#include "dpwa/config/open_log.h"
#include "dpwa/rules/progress.h"

namespace dpwa {

using kvstore::KeyedTensors;
using kvstore::LocalStore;

LocalKvstoreAdapter::LocalKvstoreAdapter(const Config& config, torch::nn::Module& model)
    : type_(config.kvstore.type), compression_(config.kvstore.compression), flat_(model) {
  std::unordered_set<const void*> seen;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad() && seen.insert(item.value().unsafeGetTensorImpl()).second)
      trained_.emplace_back(item.key(), item.value());
  }
}

void LocalKvstoreAdapter::start() {
  running_ = true;
}

// The weights in the store follow those of the model when the program has changed them.
void LocalKvstoreAdapter::update(torch::optim::Optimizer& optimizer) {
  const at::NoGradGuard no_grad;
  const auto options = kvstore::options_of(optimizer);
  std::unordered_map<const void*, std::size_t> group_of;
  for (std::size_t group = 0; group < options.size(); ++group) {
    for (const at::Tensor& tensor : optimizer.param_groups()[group].params())
      group_of[tensor.unsafeGetTensorImpl()] = group;
  }
  const bool fresh = stores_.size() != options.size();
  if (fresh) {
    stores_.assign(options.size(), LocalStore(type_));
    for (LocalStore& store : stores_) store.set_compression(compression_);
  }
  for (std::size_t group = 0; group < options.size(); ++group)
    stores_[group].set_optimizer(options[group]);
  for (const auto& [name, parameter] : trained_) {
    const auto group = group_of.find(parameter.unsafeGetTensorImpl());
    if (group == group_of.end()) continue;
    LocalStore& store = stores_[group->second];
    if (fresh) store.init({{name, {parameter}}});
    if (!parameter.grad().defined()) continue;
    store.push({{name, {parameter.grad()}}}, 0)->wait();
    store.pull({{name, {parameter}}}, 0)->wait();
  }
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
