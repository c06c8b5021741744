#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/optim/lbfgs.h>
#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "adapters/inference/elbo.h"
#include "adapters/inference/gaussian_posterior.h"

// Models whose posterior is known in closed form, with the terms of the ELBO in closed form too:
// a right objective gives that posterior to the precision of the arithmetic.
namespace dpwa::test {

inline at::Tensor values(const std::vector<double>& numbers) {
  return torch::tensor(numbers, torch::kDouble);
}

// y_n ~ N(z, 1), z ~ N(0, 1), eight rows with mean 2: the posterior is N(16/9, 1/9).
struct NormalMean {
  at::Tensor y = values({2.5, 1.5, 3, 1, 4, 0, 2.25, 1.75});

  static ElboTerms terms(const GaussianPosterior& q, const at::Tensor& y) {
    const auto squares = (y - q.mean()).square() + q.variance();
    return {0.5 * squares.sum(), {}, q.kl_to_normal(0, 1)};
  }
};

// y ~ N(X w, 1/β), w ~ N(0, 1/α): the posterior is N(β S Xᵀ y, S) with S = (α I + β Xᵀ X)⁻¹.
struct LinearRegression {
  static constexpr double alpha = 2;
  static constexpr double beta = 4;
  at::Tensor x, y;

  explicit LinearRegression(std::int64_t rows) {
    at::Generator noise = at::make_generator<at::CPUGeneratorImpl>(11);
    x = 0.3 * torch::randn({rows, 3}, noise, torch::kDouble);
    x.select(1, 2) += 0.8 * x.select(1, 0);  // correlated, so that a mean-field q differs
    y = x.mv(values({1, -2, 0.5})) + 0.5 * torch::randn({rows}, noise, torch::kDouble);
  }
  at::Tensor precision() const {
    return alpha * torch::eye(3, torch::kDouble) + beta * x.t().mm(x);
  }
  at::Tensor mean() const { return beta * precision().inverse().mv(x.t().mv(y)); }

  static ElboTerms terms(const GaussianPosterior& q, const at::Tensor& x, const at::Tensor& y) {
    const auto misfit = (y - x.mv(q.mean())).square().sum() + (x.mm(q.covariance()) * x).sum();
    return {0.5 * beta * misfit, {}, q.kl_to_normal(0, 1 / std::sqrt(alpha))};
  }
};

inline void minimise(const std::vector<at::Tensor>& parameters,
                     const std::function<at::Tensor()>& objective) {
  torch::optim::LBFGS optimizer(parameters, torch::optim::LBFGSOptions(1)
                                                .max_iter(300)
                                                .tolerance_grad(1e-12)
                                                .tolerance_change(1e-18)
                                                .history_size(30)
                                                .line_search_fn("strong_wolfe"));
  optimizer.step([&] {
    optimizer.zero_grad();
    auto loss = objective();
    loss.backward();
    return loss;
  });
}

// Of what is found, in double precision.
constexpr double exact = 1e-6;

inline at::Generator seeded(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace dpwa::test
