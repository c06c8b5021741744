#include "adapters/inference/gaussian_posterior.h"

#include <c10/core/ScalarType.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "adapters/inference/split_data.h"

namespace dpwa {
namespace {

const double log_two_pi = std::log(2 * std::numbers::pi);

at::Tensor log_diagonal(const at::Tensor& mean, double sd) {
  return torch::diag(torch::full_like(mean, std::log(sd)));
}

bool is_finite(const at::Tensor& tensor) {
  return torch::isfinite(tensor).all().item<bool>();
}

// The first mean, if it can be one.
const at::Tensor& checked(const at::Tensor& mean) {
  const std::string what =
      "a posterior needs a vector of at least one floating-point number as its first mean, not ";
  if (!mean.defined()) throw std::invalid_argument(what + "an undefined tensor");
  if (mean.numel() == 0) {
    throw std::invalid_argument("a posterior without parameters: its first mean, " +
                                words_of_shape(mean) + ", is empty; accepted: at least one number");
  }
  if (mean.dim() != 1 || !mean.is_floating_point() || mean.is_sparse())
    throw std::invalid_argument(what + words_of_shape(mean));
  return mean;
}

// LibTorch factors matrices of these types alone.
const at::Tensor& checked_for_factors(const at::Tensor& mean) {
  const auto type = checked(mean).scalar_type();
  if (type == at::kFloat || type == at::kDouble) return mean;
  throw std::invalid_argument("a full covariance in " + words_of_shape(mean) +
                              " is not offered; accepted: float32 or float64");
}

// One value, or one for each of D.
void check_of_prior(const at::Tensor& value, const char* name, std::int64_t dimension) {
  const bool fits =
      value.defined() && (value.numel() == 1 || (value.dim() == 1 && value.numel() == dimension));
  if (fits) return;
  throw std::invalid_argument(std::string("kl_to_normal: the ") + name + " of the prior is " +
                              words_of_shape(value) + "; accepted: one number, or " +
                              std::to_string(dimension));
}

// Whether natural parameters in the precision of `type` determine mean and deviations to a tenth of
// the latter: by the largest change that rounding them can make. All in float64, S the covariance.
bool determined(const NaturalParameters& natural, const at::Tensor& covariance,
                const at::Tensor& mean, at::ScalarType type) {
  constexpr double tolerance = 0.1;
  const double unit = 0.5 * (type == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon());
  const at::Tensor spread = covariance.abs(), precision = natural.precision.abs();
  const at::Tensor of_mean =
      unit * spread.mv(natural.weighted_mean.abs() + precision.mv(mean.abs()));
  const at::Tensor of_variance = unit * (spread.mm(precision) * spread).sum(1);
  const at::Tensor variance = covariance.diagonal();
  return (of_mean <= tolerance * variance.sqrt()).all().item<bool>() &&
         (of_variance <= tolerance * variance).all().item<bool>();
}

// Lower factors of positive definite matrices; undefined for other matrices.
at::Tensor lower_factor(const at::Tensor& matrix) {
  const auto [factor, info] = torch::linalg_cholesky_ex(matrix);
  return info.item<int>() == 0 && is_finite(factor) ? factor : at::Tensor();
}

}  // namespace

GaussianPosterior::GaussianPosterior(const at::Tensor& mean, const at::Tensor& scale) {
  if (!is_finite(mean) || !is_finite(scale))
    throw std::invalid_argument(
        "a posterior needs a finite mean and a standard deviation above 0 to begin with");
  mean_ = register_parameter("mean", mean.detach().clone());
  scale_ = register_parameter("scale", scale.detach().clone());
}

at::Tensor GaussianPosterior::draw(std::int64_t draws,
                                   const std::optional<at::Generator>& generator) const {
  if (draws < 1)
    throw std::invalid_argument("draw: " + std::to_string(draws) +
                                " draws of a posterior; accepted: at least 1");
  const auto noise =
      torch::randn({draws, dimension()}, generator, mean_.options().requires_grad(false));
  return mean_ + spread(noise);
}

at::Tensor GaussianPosterior::kl_to_normal(const at::Tensor& mean, const at::Tensor& sd) const {
  check_of_prior(mean, "mean", dimension());
  check_of_prior(sd, "standard deviation", dimension());
  // Elsewhere a look at the values would wait for the device.
  if (mean.is_cpu() && sd.is_cpu() &&
      !(is_finite(mean) && is_finite(sd) && (sd > 0).all().item<bool>()))
    throw std::invalid_argument(
        "kl_to_normal: a prior needs a finite mean and a finite standard deviation above 0");
  const auto expected = ((mean_ - mean).square() + variance()) / (2 * sd.square());
  const auto log_sd = sd.log().expand_as(mean_);
  return (expected + log_sd + 0.5 * log_two_pi).sum() - entropy();
}

at::Tensor GaussianPosterior::kl_to_normal(double mean, double sd) const {
  const auto type = mean_.options().requires_grad(false);
  return kl_to_normal(torch::full({1}, mean, type), torch::full({1}, sd, type));
}

void GaussianPosterior::check_values(const at::Tensor& z) const {
  if (z.defined() && z.dim() > 0 && z.size(-1) == dimension()) return;
  throw std::invalid_argument("log_density: the values are " + words_of_shape(z) +
                              ", the posterior is over " + std::to_string(dimension()) +
                              "; accepted: rows of that many");
}

MeanFieldGaussian::MeanFieldGaussian(const at::Tensor& mean, double sd)
    : GaussianPosterior(mean, torch::full_like(checked(mean), std::log(sd))) {}

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
  check_values(z);
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
    : GaussianPosterior(mean, log_diagonal(checked_for_factors(mean), sd)) {}

double FullGaussian::unit() const {
  return 1 / std::sqrt(static_cast<double>(dimension()));
}

at::Tensor FullGaussian::factor() const {
  const auto diagonal = torch::eye(dimension(), scale_.options().requires_grad(false));
  return scale_.diagonal().exp().unsqueeze(1) * (diagonal + unit() * torch::tril(scale_, -1));
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
  check_values(z);
  const auto rows = (z - mean_).reshape({-1, dimension()});
  const auto noise = torch::linalg_solve_triangular(factor(), rows.t(), /*upper=*/false);
  const auto density = -0.5 * noise.square().sum(0) - scale_.diagonal().sum() -
                       0.5 * log_two_pi * static_cast<double>(dimension());
  return density.reshape(z.sizes().slice(0, static_cast<std::size_t>(z.dim() - 1)));
}

at::Tensor FullGaussian::spread(const at::Tensor& noise) const {
  return noise.mm(factor().t());
}

// In float64, as the inverse of a matrix of correlated values loses digits.
NaturalParameters FullGaussian::natural() const {
  const torch::NoGradGuard no_gradients;
  const auto precision = torch::cholesky_inverse(factor().to(torch::kDouble));
  const auto weighted_mean = precision.mv(mean_.to(torch::kDouble));
  return {weighted_mean.to(mean_.scalar_type()), precision.to(mean_.scalar_type())};
}

bool FullGaussian::set_natural(const NaturalParameters& from) {
  const torch::NoGradGuard no_gradients;
  const NaturalParameters natural{from.weighted_mean.to(torch::kDouble),
                                  from.precision.to(torch::kDouble)};
  const auto of_precision = lower_factor(natural.precision);
  if (!of_precision.defined()) return false;
  const auto covariance = torch::cholesky_inverse(of_precision);
  const auto lower = lower_factor(covariance);
  const auto mean = covariance.mv(natural.weighted_mean);
  if (!lower.defined() || !is_finite(mean)) return false;
  if (!determined(natural, covariance, mean, mean_.scalar_type())) return false;
  const auto sd = lower.diagonal();
  mean_.copy_(mean);
  scale_.copy_(torch::tril(lower, -1) / (unit() * sd.unsqueeze(1)) + torch::diag(sd.log()));
  return true;
}

}  // namespace dpwa
