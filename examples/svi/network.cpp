#include "examples/svi/network.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cmath>
#include <numbers>

#include "adapters/inference/densities.h"

namespace dpwa::svi {
namespace {

constexpr std::int64_t outputs = 2;
constexpr double first_sd = 0.05;  // of q

std::int64_t weights_of(std::int64_t inputs, std::int64_t hidden) {
  if (hidden == 0) return outputs * (inputs + 1);
  return hidden * (inputs + 1) + outputs * (hidden + 1);
}

// Takes matrices and vectors from the columns of the draws, one after the other.
class Columns {
 public:
  explicit Columns(const at::Tensor& draws) : draws_(draws) {}

  at::Tensor take(std::int64_t rows, std::int64_t columns) {
    const auto part = draws_.narrow(1, at_, rows * columns);
    at_ += rows * columns;
    return part.reshape({draws_.size(0), rows, columns});
  }

 private:
  const at::Tensor& draws_;
  std::int64_t at_ = 0;
};

}  // namespace

Network::Network(std::int64_t inputs, std::int64_t hidden, PosteriorKind posterior,
                 std::uint64_t seed)
    : inputs_(inputs), hidden_(hidden) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  // Units must differ to begin with; a linear model begins at the prediction of its prior.
  const double apart = hidden == 0 ? 0 : 0.5;
  const auto mean = apart * torch::randn({weights_of(inputs, hidden)}, generator, torch::kFloat);
  if (posterior == PosteriorKind::full) {
    posterior_ = std::make_shared<FullGaussian>(mean, first_sd);
  } else {
    posterior_ = std::make_shared<MeanFieldGaussian>(mean, first_sd);
  }
  register_module("weights", posterior_);
}

Network::Outputs Network::forward(const at::Tensor& weights, const at::Tensor& x) const {
  Columns columns(weights);
  at::Tensor below = x.unsqueeze(0).expand({weights.size(0), x.size(0), inputs_});
  double scale = 1;
  if (hidden_ > 0) {
    const auto matrix = columns.take(hidden_, inputs_);
    const auto offset = columns.take(1, hidden_);
    below = torch::tanh(torch::baddbmm(offset, below, matrix.transpose(1, 2)));
    scale = 1 / std::sqrt(static_cast<double>(hidden_));
  }
  const auto matrix = scale * columns.take(outputs, below.size(2));
  const auto offset = columns.take(1, outputs);
  const auto above = torch::baddbmm(offset, below, matrix.transpose(1, 2));
  return {above.select(2, 0), above.select(2, 1)};
}

ElboTerms Network::terms(const at::Tensor& x, const at::Tensor& y, std::int64_t draws) const {
  const Outputs predicted = forward(posterior_->draw(draws), x);
  const auto density = log_normal(y.unsqueeze(0), predicted.mean, predicted.log_sd);
  return {-density.mean(0).sum(), {}, posterior_->kl_to_normal(0, 1)};
}

Predictive::Predictive(const Network& network, const at::Tensor& weights, const at::Tensor& x)
    : outputs(network.forward(weights, x)),
      mean(outputs.mean.mean(0)),
      model_sd((outputs.mean - mean).square().mean(0).sqrt()),
      sd(((2 * outputs.log_sd).exp().mean(0) + model_sd.square()).sqrt()) {}

at::Tensor Predictive::log_density(const at::Tensor& y) const {
  const auto densities = log_normal(y.unsqueeze(0), outputs.mean, outputs.log_sd);
  return torch::logsumexp(densities, 0) - std::log(static_cast<double>(outputs.mean.size(0)));
}

at::Tensor Predictive::rank_of(const at::Tensor& y) const {
  const auto distance = (y.unsqueeze(0) - outputs.mean) * (-outputs.log_sd).exp();
  return (0.5 * torch::erfc(-distance / std::numbers::sqrt2)).mean(0);
}

}  // namespace dpwa::svi
