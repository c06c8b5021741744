#include "adapters/collective/torch_replica.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "adapters/collective/engine/operations.h"
#include "adapters/collective/engine/tensor_form.h"
#include "adapters/common/module_tensors.h"

namespace dpwa::collective {
namespace {

const ProcessGroup& process_group(const StepGroup& group) {
  return static_cast<const ProcessGroup&>(group);
}

// Weights travel in the order in which they lie in memory, and gradients in that of the weights.
std::string form_and_order_of(const at::Tensor& tensor) {
  return form_of(tensor) + (tensor.is_contiguous() ? "" : ", channels_last");
}

}  // namespace

void TorchReplica::set_samples(double samples) {
  samples_ = samples;
  if (reducer_) reducer_->set_samples(samples);
}

void TorchReplica::set_accumulating(bool on) {
  accumulating_ = on;
  if (reducer_) reducer_->set_accumulating(on);
}

std::vector<Signature::Entry> TorchReplica::tensors() const {
  std::vector<Signature::Entry> tensors;
  for (const auto& [name, tensor] : parameters_of(model_)) {
    const std::string trained = tensor.requires_grad() ? "" : ", not trained";
    tensors.push_back({name, form_and_order_of(tensor) + trained});
  }
  for (const auto& [name, tensor] : buffers_of(model_))
    tensors.push_back({name, form_and_order_of(tensor)});
  return tensors;
}

// The model changes once all of it is there.
void TorchReplica::broadcast_model(const StepGroup& group, int source) {
  const at::NoGradGuard no_grad;
  const bool gives = group.rank() == source;
  const at::Tensor model = gives ? flat_.memory() : at::empty_like(flat_.memory());
  Operations(process_group(group)).broadcast("the model", model, source);
  if (!gives) flat_.memory().copy_(model);
}

// Through sums of all members, so that the bits are the same. The model changes once all are there.
void TorchReplica::average_model(const StepGroup& group, const std::vector<bool>& averaged) {
  const at::NoGradGuard no_grad;
  const bool counts = averaged[static_cast<std::size_t>(group.rank())];
  const auto number = static_cast<double>(std::ranges::count(averaged, true));
  std::vector<std::pair<at::Tensor, at::Tensor>> means;
  for (std::size_t i = 0; i < flat_.manifest().regions().size(); ++i) {
    const at::Tensor region = flat_.region(i);
    if (!region.is_floating_point()) continue;
    const at::Tensor own = counts ? region : at::zeros_like(region);
    means.emplace_back(region,
                       Operations(process_group(group))
                           .allreduce("the weights of those that trained apart", own,
                                      {.reduction = Reduction::sum, .postscale = 1 / number}));
  }
  for (const auto& [region, mean] : means) region.copy_(mean);
}

void TorchReplica::enter(const StepGroup& group, WaitWords waits) {
  reducer_ = std::make_unique<GradientReducer>(model_, process_group(group), options_,
                                               std::move(waits), /*sends_checksums=*/true);
  reducer_->set_samples(samples_);
  reducer_->set_accumulating(accumulating_);
}

StepResult TorchReplica::exchange() {
  if (!reducer_->done()) reducer_->contribute(/*joined=*/false);
  return end_exchange();
}

StepResult TorchReplica::repeat() {
  const bool nothing = std::ranges::find(used_, true) == used_.end();
  if (nothing) {
    reducer_->contribute(/*joined=*/false);
  } else {
    reducer_->repeat(used_);
  }
  return end_exchange();
}

StepResult TorchReplica::exchange_joined() {
  reducer_->contribute(/*joined=*/true);
  return end_exchange();
}

StepResult TorchReplica::end_exchange() {
  StepResult result = reducer_->end_step();
  used_ = reducer_->used();
  return result;
}

}  // namespace dpwa::collective
