#include "adapters/kvstore/torch_values.h"

#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <typeinfo>

#include "adapters/common/flat_parameters.h"

namespace dpwa::kvstore {
namespace {

OptimizerKind kind_of(const torch::optim::SGDOptions& sgd) {
  if (sgd.momentum() == 0) return OptimizerKind::sgd;
  return sgd.nesterov() ? OptimizerKind::nesterov : OptimizerKind::momentum;
}

template <class Adam>
OptimizerOptions adam_options(OptimizerKind kind, const Adam& adam) {
  OptimizerOptions options = default_options(kind);
  options.beta1 = std::get<0>(adam.betas());
  options.beta2 = std::get<1>(adam.betas());
  options.epsilon = adam.eps();
  options.weight_decay = adam.weight_decay();
  options.amsgrad = adam.amsgrad();
  return options;
}

// The options of a group, if the optimizer is of just this class: one that is derived from it may
// step otherwise. Else null.
template <class Class, class Options>
const Options* options_if(const torch::optim::Optimizer& optimizer,
                          const torch::optim::OptimizerOptions& group) {
  return typeid(optimizer) == typeid(Class) ? dynamic_cast<const Options*>(&group) : nullptr;
}

OptimizerOptions options_of_group(const torch::optim::Optimizer& optimizer,
                                  const torch::optim::OptimizerOptions& group) {
  using namespace torch::optim;
  OptimizerOptions options;
  if (const auto* sgd = options_if<SGD, SGDOptions>(optimizer, group)) {
    options = default_options(kind_of(*sgd));
    options.momentum = sgd->momentum();
    options.dampening = sgd->dampening();
    options.weight_decay = sgd->weight_decay();
  } else if (const auto* adam = options_if<Adam, AdamOptions>(optimizer, group)) {
    options = adam_options(OptimizerKind::adam, *adam);
  } else if (const auto* adamw = options_if<AdamW, AdamWOptions>(optimizer, group)) {
    options = adam_options(OptimizerKind::adamw, *adamw);
  } else if (const auto* adagrad = options_if<Adagrad, AdagradOptions>(optimizer, group)) {
    options = default_options(OptimizerKind::adagrad);
    options.rate_decay = adagrad->lr_decay();
    // The constructor of LibTorch's fills all states with that of the defaults.
    options.accumulator =
        static_cast<const AdagradOptions&>(optimizer.defaults()).initial_accumulator_value();
    options.weight_decay = adagrad->weight_decay();
    options.epsilon = adagrad->eps();
  } else if (const auto* rmsprop = options_if<RMSprop, RMSpropOptions>(optimizer, group)) {
    options = default_options(OptimizerKind::rmsprop);
    options.alpha = rmsprop->alpha();
    options.epsilon = rmsprop->eps();
    options.momentum = rmsprop->momentum();
    options.weight_decay = rmsprop->weight_decay();
    options.centered = rmsprop->centered();
  } else {
    // The error of an unknown name lists the known ones.
    try {
      optimizer_kind(c10::demangle(typeid(optimizer).name()));
    } catch (const std::invalid_argument& unknown) {
      throw UnknownOptimizer(unknown.what());
    }
  }
  options.learning_rate = group.get_lr();
  if (const auto problem = options_problem(options)) throw KVStoreError(*problem);
  return options;
}

}  // namespace

ValueSpec spec_of(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined()) throw KVStoreError(what + ": an undefined tensor");
  const auto dtype = to_dtype(tensor.scalar_type());
  if (!dtype) {
    throw KVStoreError(what + ": a tensor of " + c10::toString(tensor.scalar_type()) +
                       "; accepted: float32, float64, float16, bfloat16");
  }
  ValueSpec spec{*dtype, {}};
  for (const std::int64_t extent : tensor.sizes())
    spec.shape.push_back(static_cast<std::uint64_t>(extent));
  if (const auto problem = spec_problem(spec)) throw KVStoreError(what + ": it " + *problem);
  return spec;
}

at::Tensor dense_on(const at::Tensor& tensor, at::Device device) {
  at::Tensor values = tensor.detach();
  if (values.layout() != at::kStrided) {
    const bool wide = values.scalar_type() == at::kDouble;
    values = values.to(wide ? at::kDouble : at::kFloat).to_dense().to(values.scalar_type());
  }
  return values.to(device).contiguous();
}

std::vector<OptimizerOptions> options_of(const torch::optim::Optimizer& optimizer) {
  std::vector<OptimizerOptions> groups;
  for (const auto& group : optimizer.param_groups())
    groups.push_back(options_of_group(optimizer, group.options()));
  return groups;
}

}  // namespace dpwa::kvstore
