#include "adapters/inference/gaussian_posterior.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace dpwa {
namespace {

const double log_two_pi = std::log(2 * std::numbers::pi);

at::Tensor log_diagonal(const at::Tensor& mean, double sd) {
  return torch::diag(torch::full_like(mean, std::log(sd)));
}

bool is_finite(const at::Tensor& tensor) {
  return torch::isfinite(tensor).all().item<bool>();
}

// Lower factors of positive definite matrices; undefined for other matrices.
at::Tensor lower_factor(const at::Tensor& matrix) {
  const auto [factor, info] = torch::linalg_cholesky_ex(matrix);
  return info.item<int>() == 0 && is_finite(factor) ? factor : at::Tensor();
}

}  // namespace

GaussianPosterior::GaussianPosterior(const at::Tensor& mean, const at::Tensor& scale) {
  if (mean.dim() != 1 || mean.numel() == 0 || !mean.is_floating_point())
    throw std::invalid_argument(
        "a posterior without parameters: it needs a vector of at least one floating-point number "
        "as its first mean");
  if (!is_finite(mean) || !is_finite(scale))
    throw std::invalid_argument(
        "a posterior needs a finite mean and a standard deviation above 0 to begin with");
  mean_ = register_parameter("mean", mean.detach().clone());
  scale_ = register_parameter("scale", scale.detach().clone());
}

at::Tensor GaussianPosterior::draw(std::int64_t draws,
                                   const std::optional<at::Generator>& generator) const {
  const auto noise =
      torch::randn({draws, dimension()}, generator, mean_.options().requires_grad(false));
  return mean_ + spread(noise);
}

at::Tensor GaussianPosterior::kl_to_normal(const at::Tensor& mean, const at::Tensor& sd) const {
  const auto expected = ((mean_ - mean).square() + variance()) / (2 * sd.square());
  const auto log_sd = sd.log().expand_as(mean_);
  return (expected + log_sd + 0.5 * log_two_pi).sum() - entropy();
}

at::Tensor GaussianPosterior::kl_to_normal(double mean, double sd) const {
  const auto type = mean_.options().requires_grad(false);
  return kl_to_normal(torch::full({1}, mean, type), torch::full({1}, sd, type));
}

MeanFieldGaussian::MeanFieldGaussian(const at::Tensor& mean, double sd)
    : GaussianPosterior(mean, torch::full_like(mean, std::log(sd))) {}

at::Tensor MeanFieldGaussian::variance() const {
  return (2 * scale_).exp();
}

at::Tensor MeanFieldGaussian::covariance() const {
  return torch::diag(variance());
}

at::Tensor MeanFieldGaussian::entropy() const {
  return (scale_ + 0.5 * (1 + log_two_pi)).sum();
}

at::Tensor MeanFieldGaussian::log_density(const at::Tensor& z) const {
  return (-0.5 * ((z - mean_) * (-scale_).exp()).square() - scale_ - 0.5 * log_two_pi).sum(-1);
}

at::Tensor MeanFieldGaussian::spread(const at::Tensor& noise) const {
  return noise * scale_.exp();
}

NaturalParameters MeanFieldGaussian::natural() const {
  const torch::NoGradGuard no_gradients;
  const auto precision = (-2 * scale_).exp();
  return {precision * mean_, precision};
}

bool MeanFieldGaussian::set_natural(const NaturalParameters& from) {
  const torch::NoGradGuard no_gradients;
  const auto mean = from.weighted_mean / from.precision;
  const auto log_sd = -0.5 * from.precision.log();  // NaN below 0
  if (!is_finite(mean) || !is_finite(log_sd)) return false;
  mean_.copy_(mean);
  scale_.copy_(log_sd);
  return true;
}

FullGaussian::FullGaussian(const at::Tensor& mean, double sd)
    : GaussianPosterior(mean, mean.dim() == 1 ? log_diagonal(mean, sd) : mean) {}

at::Tensor FullGaussian::factor() const {
  return torch::tril(scale_, -1) + torch::diag(scale_.diagonal().exp());
}

at::Tensor FullGaussian::variance() const {
  return factor().square().sum(1);
}

at::Tensor FullGaussian::covariance() const {
  const auto lower = factor();
  return lower.mm(lower.t());
}

at::Tensor FullGaussian::entropy() const {
  return (scale_.diagonal() + 0.5 * (1 + log_two_pi)).sum();
}

at::Tensor FullGaussian::log_density(const at::Tensor& z) const {
  const auto rows = (z - mean_).reshape({-1, dimension()});
  const auto noise = torch::linalg_solve_triangular(factor(), rows.t(), /*upper=*/false);
  const auto density = -0.5 * noise.square().sum(0) - scale_.diagonal().sum() -
                       0.5 * log_two_pi * static_cast<double>(dimension());
  return density.reshape(z.sizes().slice(0, static_cast<std::size_t>(z.dim() - 1)));
}

at::Tensor FullGaussian::spread(const at::Tensor& noise) const {
  return noise.mm(factor().t());
}

NaturalParameters FullGaussian::natural() const {
  const torch::NoGradGuard no_gradients;
  const auto precision = torch::cholesky_inverse(factor());
  return {precision.mv(mean_), precision};
}

bool FullGaussian::set_natural(const NaturalParameters& from) {
  const torch::NoGradGuard no_gradients;
  const auto of_precision = lower_factor(from.precision);
  if (!of_precision.defined()) return false;
  const auto covariance = torch::cholesky_inverse(of_precision);
  const auto lower = lower_factor(covariance);
  const auto mean = covariance.mv(from.weighted_mean);
  if (!lower.defined() || !is_finite(mean)) return false;
  mean_.copy_(mean);
  scale_.copy_(torch::tril(lower, -1) + torch::diag(lower.diagonal().log()));
  return true;
}

}  // namespace dpwa
