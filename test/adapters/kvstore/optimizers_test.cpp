#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <string>

#include "adapters/common/tensor_bytes.h"
#include "adapters/kvstore/torch_optimizer.h"
#include "adapters/kvstore/torch_states.h"
#include "adapters/kvstore/torch_values.h"
#include "test/adapters/doctest_with_torch.h"

namespace dpwa::kvstore {
namespace {

using namespace torch::optim;
using Tensors = std::vector<torch::Tensor>;

struct Case {
  std::string name;
  std::function<std::unique_ptr<Optimizer>(Tensors)> make;
};

template <class Which, class Options>
Case of(const char* name, const Options& options) {
  return {name, [options](Tensors parameters) {
            return std::make_unique<Which>(std::move(parameters), options);
          }};
}

const std::vector<Case> cases = {
    of<SGD>("sgd", SGDOptions(0.1).weight_decay(0.01)),
    of<SGD>("momentum", SGDOptions(0.05).momentum(0.9).weight_decay(0.01)),
    of<SGD>("momentum, dampening", SGDOptions(0.05).momentum(0.9).dampening(0.3)),
    of<SGD>("nesterov", SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(0.01)),
    of<Adam>("adam", AdamOptions(0.01).weight_decay(0.01)),
    of<Adam>("adam, amsgrad", AdamOptions(0.01).weight_decay(0.01).amsgrad(true)),
    of<AdamW>("adamw", AdamWOptions(0.01).weight_decay(0.1).betas({0.8, 0.95})),
    of<AdamW>("adamw, amsgrad", AdamWOptions(0.01).amsgrad(true)),
    of<Adagrad>("adagrad", AdagradOptions(0.05).weight_decay(0.01).lr_decay(0.01)),
    of<Adagrad>("adagrad, accumulator", AdagradOptions(0.05).initial_accumulator_value(0.1)),
    of<RMSprop>("rmsprop", RMSpropOptions(0.01).weight_decay(0.01)),
    of<RMSprop>("rmsprop, momentum", RMSpropOptions(0.01).weight_decay(0.01).momentum(0.9)),
    of<RMSprop>("rmsprop, centered", RMSpropOptions(0.01).weight_decay(0.01).centered(true)),
    of<RMSprop>("rmsprop, both", RMSpropOptions(0.01).momentum(0.9).centered(true)),
};

// Relative distance after 100 steps on a bowl, with a learning rate that changes in the middle.
double distance_after_training(const Case& one, at::ScalarType type) {
  torch::manual_seed(11);
  const auto target = torch::randn({7, 143}).to(type);
  const auto slope = (torch::rand({7, 143}) * 2 + 0.1).to(type);
  auto x = torch::randn({7, 143}).to(type).requires_grad_();
  auto y = x.detach().clone();
  const auto optimizer = one.make({x});
  OptimizerState state;
  for (int step = 0; step < 100; ++step) {
    if (step == 40) optimizer->param_groups()[0].options().set_lr(0.003);
    if (step == 70) optimizer->param_groups()[0].options().set_lr(0.02);
    const auto noise = torch::randn({7, 143}).to(type) * 0.1;
    x.mutable_grad() = (x.detach() - target) * slope + noise;
    const auto gradient = (y - target) * slope + noise;
    optimizer->step();
    apply_update(options_of(*optimizer).front(),
                 type == at::kDouble ? DType::float64 : DType::float32, bytes_of(y),
                 const_bytes_of(gradient), 1, state);
  }
  return ((x.detach() - y).norm() / x.detach().norm()).item<double>();
}

TEST_CASE("kvstore: every optimizer equals torch's own to fp32 noise") {
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const double distance = distance_after_training(one, at::kFloat);
    CHECK(distance <= 1e-6);
    CHECK(distance_after_training(one, at::kDouble) <= 1e-13);
  }
}

TEST_CASE("kvstore: a state goes from one optimizer of torch to another bit for bit") {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const Case& one : cases) {
      CAPTURE(one.name);
      torch::manual_seed(11);
      auto x = torch::randn({7, 3}).to(type).requires_grad_();
      const auto optimizer = one.make({x});
      const auto step = [](Optimizer& which, torch::Tensor& at, int seed) {
        torch::manual_seed(seed);
        at.mutable_grad() = torch::randn({7, 3}).to(at.scalar_type());
        which.step();
      };
      const OptimizerOptions options = options_of(*optimizer).front();
      const auto given = [&](int steps) {
        auto y = x.detach().clone().requires_grad_();
        const auto other = one.make({y});
        const std::vector<at::Tensor> trained{x};
        const OptimizerState state =
            TorchOptimizer(*optimizer, trained).state(0, options, /*used=*/true);
        if (options.kind != OptimizerKind::sgd) CHECK((state.steps() > 0) == (steps > 0));
        give_state(*other, y, options, state);
        for (int i = 0; i < 3; ++i) {
          step(*other, y, 90 + i);
        }
        return y.detach();
      };
      const auto at_once = given(0);
      for (int i = 0; i < 4; ++i) step(*optimizer, x, i);
      const auto later = given(4);
      CHECK_FALSE(torch::equal(at_once, later));
      for (int i = 0; i < 3; ++i) step(*optimizer, x, 90 + i);
      CHECK(torch::equal(x.detach(), later));
    }
  }
}

TEST_CASE("kvstore: the name of an optimizer comes from its class and options") {
  const Tensors parameters = {torch::zeros({1})};
  const auto kind_of = [&](const Case& one) {
    return options_of(*one.make(parameters)).at(0).kind;
  };
  CHECK(kind_of(cases[0]) == OptimizerKind::sgd);
  CHECK(kind_of(cases[1]) == OptimizerKind::momentum);
  CHECK(kind_of(cases[3]) == OptimizerKind::nesterov);
  CHECK(kind_of(cases[4]) == OptimizerKind::adam);
  CHECK(kind_of(cases[6]) == OptimizerKind::adamw);
  CHECK(kind_of(cases[8]) == OptimizerKind::adagrad);
  CHECK(kind_of(cases[10]) == OptimizerKind::rmsprop);
}

TEST_CASE("kvstore: the accumulators of Adagrad begin as LibTorch's, in all groups") {
  const auto grouped = [](const at::Tensor& parameter) {
    OptimizerParamGroup group(Tensors{parameter});
    auto options = std::make_unique<AdagradOptions>(0.05);
    options->initial_accumulator_value(0.1);
    group.set_options(std::move(options));
    return std::make_unique<Adagrad>(std::vector<OptimizerParamGroup>{group},
                                     AdagradOptions(0.05).initial_accumulator_value(0.4));
  };
  CHECK(distance_after_training(
            {"adagrad, groups", [&](const Tensors& all) { return grouped(all.front()); }},
            at::kFloat) <= 1e-6);
}

TEST_CASE("kvstore: an optimizer that stores lack is an error that lists those they have") {
  const LBFGS lbfgs(Tensors{torch::zeros({1})}, LBFGSOptions(1));
  CHECK_THROWS_WITH_AS(options_of(lbfgs),
                       "unknown optimizer 'torch::optim::LBFGS'; known: sgd, momentum, nesterov, "
                       "adam, adamw, adagrad, rmsprop",
                       KVStoreError);
}

// An optimizer of a program.
struct OwnSgd : SGD {
  using SGD::SGD;
  at::Tensor step(LossClosure) override { return {}; }
};

TEST_CASE("kvstore: an optimizer that is derived from a known one is not taken for it") {
  const OwnSgd own(Tensors{torch::zeros({1})}, SGDOptions(0.1));
  CHECK_THROWS_AS(options_of(own), UnknownOptimizer);
}

}  // namespace
}  // namespace dpwa::kvstore
