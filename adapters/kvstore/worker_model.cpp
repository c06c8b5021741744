#include "adapters/kvstore/worker_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "adapters/common/flat_parameters.h"
#include "adapters/common/module_tensors.h"
#include "dpwa/kvstore/optimizer.h"

namespace dpwa::kvstore {
namespace {

at::Tensor flattened(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) parts.push_back(tensor.detach().reshape({-1}));
  return at::cat(parts).contiguous();
}

}  // namespace

SharedBuffers::SharedBuffers(const torch::nn::Module& model) {
  for (const auto& [name, buffer] : each_once(buffers_of(model))) {
    if (!buffer.is_floating_point()) continue;
    auto group = std::ranges::find_if(groups_, [&](const Group& each) {
      return each.members.front().scalar_type() == buffer.scalar_type();
    });
    if (group == groups_.end()) group = groups_.emplace(groups_.end());
    group->members.push_back(buffer);
  }
}

std::string SharedBuffers::name_of_key(const Group& group) {
  const std::string type(name_of(*to_dtype(group.members.front().scalar_type())));
  return "(buffers " + type + ")";
}

std::vector<std::pair<std::string, ValueSpec>> SharedBuffers::keys() const {
  std::vector<std::pair<std::string, ValueSpec>> keys;
  for (const Group& group : groups_) {
    std::uint64_t elements = 0;
    for (const at::Tensor& member : group.members)
      elements += static_cast<std::uint64_t>(member.numel());
    const DType type = *to_dtype(group.members.front().scalar_type());
    keys.emplace_back(name_of_key(group), ValueSpec{type, {elements}});
  }
  return keys;
}

void SharedBuffers::add_to(StepExchange& exchange) {
  for (Group& group : groups_) {
    group.value = flattened(group.members);
    group.key = exchange.add_buffers(name_of_key(group), group.value);
  }
}

std::vector<at::Tensor> SharedBuffers::outs() const {
  std::vector<at::Tensor> values;
  for (const Group& group : groups_) values.push_back(group.value);
  return values;
}

void SharedBuffers::push(StepExchange& exchange, kvclient::PushTerms terms, double scale) const {
  const at::NoGradGuard no_grad;
  OptimizerOptions options = default_options(OptimizerKind::sgd);
  options.learning_rate = scale;
  const OptionsBytes form = encode(options);
  terms.optimizer.assign(form.begin(), form.end());
  for (const Group& group : groups_) {
    at::Tensor change = flattened(group.members);
    change.neg_().add_(group.value);
    exchange.push(group.key, change, terms);
  }
}

void SharedBuffers::take() {
  const at::NoGradGuard no_grad;
  for (Group& group : groups_) {
    std::int64_t from = 0;
    for (at::Tensor& member : group.members) {
      member.copy_(group.value.narrow(0, from, member.numel()).view(member.sizes()));
      from += member.numel();
    }
  }
}

WorkerModel::WorkerModel(torch::nn::Module& model) : buffers(model) {
  for (const auto& [name, parameter] : each_once(parameters_of(model))) {
    if (parameter.requires_grad()) {
      trained.push_back(parameters.size());
      trained_parameters.push_back(parameter);
    }
    parameters.emplace_back(name, parameter);
    outs.push_back(parameter);
  }
  used.resize(trained.size());
}

}  // namespace dpwa::kvstore
