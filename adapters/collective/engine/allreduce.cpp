#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "adapters/collective/engine/exchange.h"
#include "adapters/collective/engine/operations.h"
#include "adapters/collective/engine/sum_in_halves.h"
#include "adapters/collective/engine/tensor_form.h"
#include "dpwa/collective/agreement.h"

namespace dpwa::collective {

namespace {

c10d::ReduceOp c10d_reduction(Reduction reduction) {
  switch (reduction) {
    case Reduction::average:
    case Reduction::sum:
      return c10d::ReduceOp::SUM;
    case Reduction::min:
      return c10d::ReduceOp::MIN;
    case Reduction::max:
      return c10d::ReduceOp::MAX;
  }
  return c10d::ReduceOp::SUM;
}

Signature signature_of(const std::vector<NamedTensor>& tensors, const ReduceOptions& options) {
  Signature signature;
  signature.operation = "allreduce " + text_of(options);
  for (const auto& [name, tensor] : tensors) {
    signature.entries.push_back({name, form_of(tensor)});
    const auto problem = reduction_problem(tensor, options);
    if (!problem.empty() && signature.problem.empty()) {
      signature.problem = "'" + name + "': " + problem;
    }
  }
  return signature;
}

std::string title(const std::vector<NamedTensor>& tensors, const ReduceOptions& options) {
  std::string text = std::string("allreduce ") + name_of(options.reduction);
  if (!tensors.empty()) text += " '" + tensors.front().name + "'";
  if (tensors.size() > 1) text += " and " + std::to_string(tensors.size() - 1) + " more";
  return text;
}

// The tensors of one working type, in one buffer.
struct Fused {
  at::ScalarType type;
  std::vector<std::size_t> members;  // places in the list of tensors
  at::Tensor flat;
  c10::intrusive_ptr<c10d::Work> work;
};

std::vector<Fused> fuse(const std::vector<NamedTensor>& tensors, const ReduceOptions& options) {
  std::vector<Fused> fused;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    auto type = working_type(tensors[k].tensor.scalar_type());
    if (options.compression != Compression::none && at::isFloatingType(type)) type = at::kFloat;
    auto place = std::find_if(fused.begin(), fused.end(),
                              [&](const Fused& one) { return one.type == type; });
    if (place == fused.end()) place = fused.insert(place, {type, {}, {}, {}});
    place->members.push_back(k);
  }
  for (auto& one : fused) {
    std::vector<at::Tensor> parts;
    for (const auto k : one.members) {
      parts.push_back(tensors[k].tensor.detach().reshape({-1}).to(one.type));
    }
    one.flat = at::cat(parts);  // a copy, so that the given tensors do not change
    if (options.prescale != 1) one.flat.mul_(options.prescale);
  }
  return fused;
}

}  // namespace

struct Handle::State {
  const ProcessGroup& group;
  std::string title;
  std::vector<NamedTensor> tensors;
  double postscale;
  std::vector<Fused> fused;
};

Handle::Handle(std::unique_ptr<State> state) : state_(std::move(state)) {}
Handle::~Handle() = default;
Handle::Handle(Handle&&) noexcept = default;
Handle& Handle::operator=(Handle&&) noexcept = default;

bool Handle::done() const {
  for (const auto& fused : state_->fused) {
    if (fused.work && !fused.work->isCompleted()) return false;
  }
  return true;
}

std::vector<at::Tensor> Handle::wait() {
  const at::NoGradGuard no_grad;
  const auto state = std::move(state_);
  std::vector<at::Tensor> results(state->tensors.size());
  state->group.run(state->title, [&] {
    for (auto& fused : state->fused) {
      if (fused.work) {
        bounded_wait(state->group, fused.work, {fused.flat});
        if (state->postscale != 1) fused.flat.mul_(state->postscale);
      }
      std::int64_t from = 0;
      for (const auto k : fused.members) {
        const auto& like = state->tensors[k].tensor;
        results[k] = fused.flat.narrow(0, from, like.numel())
                         .view(like.sizes())
                         .to(like.scalar_type(), /*non_blocking=*/false,
                             /*copy=*/state->tensors.size() > 1);
        from += like.numel();
      }
    }
  });
  return results;
}

Handle Operations::begin(const std::vector<NamedTensor>& tensors, const ReduceOptions& options) {
  const at::NoGradGuard no_grad;
  const auto signature = signature_of(tensors, options);
  if (options.check) {
    agree(group_, signature);
  } else if (!signature.problem.empty()) {
    throw CollectiveError(Failure::usage, title(tensors, options), group_.engine(),
                          signature.problem);
  }
  return launch(tensors, options);
}

Handle Operations::launch(const std::vector<NamedTensor>& tensors, const ReduceOptions& options) {
  const auto name = title(tensors, options);
  const double divisor = options.reduction == Reduction::average ? group_.size() : 1;
  auto state = std::make_unique<Handle::State>(
      Handle::State{group_, name, tensors, options.postscale / divisor, {}});
  group_.run(name, [&] {
    state->fused = fuse(tensors, options);
    for (auto& fused : state->fused) {
      const bool adds =
          options.reduction == Reduction::sum || options.reduction == Reduction::average;
      if (options.compression != Compression::none && fused.type == at::kFloat && adds) {
        sum_in_halves(group_, fused.flat, options.compression, state->postscale);
        continue;
      }
      c10d::AllreduceOptions c10d_options;
      c10d_options.reduceOp = c10d_reduction(options.reduction);
      std::vector<at::Tensor> list{fused.flat};
      fused.work = group_.c10d()->allreduce(list, c10d_options);
    }
  });
  return Handle(std::move(state));
}

std::vector<at::Tensor> Operations::grouped_allreduce(const std::vector<NamedTensor>& tensors,
                                                      const ReduceOptions& options) {
  return begin(tensors, options).wait();
}

Handle Operations::allreduce_async(const std::string& name, const at::Tensor& tensor,
                                   const ReduceOptions& options) {
  return begin({{name, tensor}}, options);
}

at::Tensor Operations::allreduce(const std::string& name, const at::Tensor& tensor,
                                 const ReduceOptions& options) {
  return grouped_allreduce({{name, tensor}}, options).front();
}

}  // namespace dpwa::collective
