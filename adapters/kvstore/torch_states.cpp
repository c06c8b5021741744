#include "adapters/kvstore/torch_states.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "adapters/common/flat_parameters.h"
#include "adapters/common/tensor_bytes.h"
#include "adapters/kvstore/torch_values.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {
namespace {

using namespace torch::optim;

// The arrays of a state, in the order of the servers; undefined: zeros.
struct Remembered {
  std::uint64_t steps = 0;
  std::vector<at::Tensor> arrays;
};

template <class State>
Remembered adam_state(const State& state, bool amsgrad) {
  Remembered all{static_cast<std::uint64_t>(state.step()), {state.exp_avg(), state.exp_avg_sq()}};
  if (amsgrad) all.arrays.push_back(state.max_exp_avg_sq());
  return all;
}

Remembered remembered(const OptimizerParamState& state, const OptimizerOptions& options) {
  if (const auto* sgd = dynamic_cast<const SGDParamState*>(&state)) {
    return {sgd->momentum_buffer().defined() ? 1U : 0U, {sgd->momentum_buffer()}};
  }
  if (const auto* adam = dynamic_cast<const AdamParamState*>(&state))
    return adam_state(*adam, options.amsgrad);
  if (const auto* adamw = dynamic_cast<const AdamWParamState*>(&state))
    return adam_state(*adamw, options.amsgrad);
  if (const auto* adagrad = dynamic_cast<const AdagradParamState*>(&state))
    return {static_cast<std::uint64_t>(adagrad->step()), {adagrad->sum()}};
  if (const auto* rmsprop = dynamic_cast<const RMSpropParamState*>(&state)) {
    Remembered all{static_cast<std::uint64_t>(rmsprop->step()), {rmsprop->square_avg()}};
    if (options.centered) all.arrays.push_back(rmsprop->grad_avg());
    if (options.momentum > 0) all.arrays.push_back(rmsprop->momentum_buffer());
    return all;
  }
  return {};
}

template <class State>
std::unique_ptr<OptimizerParamState> new_adam(const Remembered& all) {
  auto state = std::make_unique<State>();
  state->step(static_cast<std::int64_t>(all.steps));
  state->exp_avg(all.arrays[0]);
  state->exp_avg_sq(all.arrays[1]);
  if (all.arrays.size() > 2) state->max_exp_avg_sq(all.arrays[2]);
  return state;
}

std::unique_ptr<OptimizerParamState> new_state(const Remembered& all,
                                               const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      return nullptr;
    case OptimizerKind::momentum:
    case OptimizerKind::nesterov: {
      auto state = std::make_unique<SGDParamState>();
      state->momentum_buffer(all.arrays[0]);
      return state;
    }
    case OptimizerKind::adam:
      return new_adam<AdamParamState>(all);
    case OptimizerKind::adamw:
      return new_adam<AdamWParamState>(all);
    case OptimizerKind::adagrad: {
      auto state = std::make_unique<AdagradParamState>();
      state->step(static_cast<std::int64_t>(all.steps));
      state->sum(all.arrays[0]);
      return state;
    }
    case OptimizerKind::rmsprop:
      break;
  }
  auto state = std::make_unique<RMSpropParamState>();
  state->step(static_cast<std::int64_t>(all.steps));
  state->square_avg(all.arrays[0]);
  if (options.centered) state->grad_avg(all.arrays[1]);
  if (options.momentum > 0) state->momentum_buffer(all.arrays.back());
  return state;
}

}  // namespace

OptimizerState state_of(const OptimizerParamState* remembered_by_torch, const at::Tensor& parameter,
                        const OptimizerOptions& options, bool used) {
  const DType dtype = *to_dtype(parameter.scalar_type());
  const auto elements = static_cast<std::uint64_t>(parameter.numel());
  const OptimizerState fresh(options, dtype, elements);
  Remembered all;
  if (remembered_by_torch != nullptr) all = remembered(*remembered_by_torch, options);
  if (options.kind == OptimizerKind::sgd)
    return *OptimizerState::restored(options, dtype, elements, used ? 1 : 0, {});
  if (all.steps == 0) return fresh;
  const auto type = to_scalar_type(computed_in(dtype));
  std::vector<std::byte> arrays(fresh.bytes().begin(), fresh.bytes().end());
  std::span<std::byte> rest = arrays;
  for (const at::Tensor& each : all.arrays) {
    const std::size_t bytes = arrays.size() / all.arrays.size();
    if (each.defined()) {
      const at::Tensor host = each.detach().to(at::kCPU).to(type).contiguous();
      std::memcpy(rest.data(), const_bytes_of(host).data(), std::min(bytes, host.nbytes()));
    }
    rest = rest.subspan(bytes);
  }
  return *OptimizerState::restored(options, dtype, elements, all.steps, arrays);
}

void give_state(Optimizer& optimizer, const at::Tensor& parameter, const OptimizerOptions& options,
                const OptimizerState& state) {
  const DType dtype = *to_dtype(parameter.scalar_type());
  auto& states = optimizer.state();
  void* const key = parameter.unsafeGetTensorImpl();
  // Adagrad has one from the beginning.
  if ((state.steps() == 0 && options.kind != OptimizerKind::adagrad) || parameter.numel() == 0) {
    states.erase(key);
    return;
  }
  const std::size_t bytes =
      static_cast<std::size_t>(parameter.numel()) * size_of(computed_in(dtype));
  Remembered all{state.steps(), {}};
  for (std::size_t at = 0; at < state.bytes().size(); at += bytes) {
    const at::Tensor host = at::empty(parameter.sizes(), to_scalar_type(computed_in(dtype)));
    std::memcpy(bytes_of(host).data(), state.bytes().data() + at, bytes);
    all.arrays.push_back(at::empty_like(parameter.detach()).copy_(host));
  }
  if (auto fresh = new_state(all, options)) {
    states[key] = std::move(fresh);
  } else {
    states.erase(key);
  }
}

}  // namespace dpwa::kvstore
