#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>

namespace dpwa {

// A Gaussian by its natural parameters, where S is the covariance: S⁻¹ m and S⁻¹. Products of
// Gaussians add them, so their mean over workers is the exact way to join posteriors of shards.
struct NaturalParameters {
  at::Tensor weighted_mean;  // [D]
  at::Tensor precision;      // of the shape of GaussianPosterior::scale()
};

// The Gaussian q(z) of variational inference over a vector z of D values. A module with two
// parameters, `mean` and `scale`: register it in the model, and every back end shares it like any
// other layer. Densities, entropy and draws are differentiable in both parameters. One thread.
class GaussianPosterior : public torch::nn::Module {
 public:
  std::int64_t dimension() const { return mean_.numel(); }
  const at::Tensor& mean() const { return mean_; }    // [D]
  const at::Tensor& scale() const { return scale_; }  // as the class below states

  virtual at::Tensor variance() const = 0;    // [D], of each value alone
  virtual at::Tensor covariance() const = 0;  // [D, D]
  virtual at::Tensor entropy() const = 0;     // scalar
  // The log density at each row of z[..., D].
  virtual at::Tensor log_density(const at::Tensor& z) const = 0;

  // At least one independent draw by the reparameterisation mean + L ε, as rows [draws, D]. The
  // noise is that of `generator`, or of the default one. Workers should draw different noise: seed
  // by rank.
  at::Tensor draw(std::int64_t draws,
                  const std::optional<at::Generator>& generator = std::nullopt) const;

  // KL(q ‖ N(mean, sd²)), a scalar in closed form. `mean` and `sd` of the prior are one value or D;
  // throws std::invalid_argument for other shapes, and in host memory for values of no normal
  // distribution.
  at::Tensor kl_to_normal(const at::Tensor& mean, const at::Tensor& sd) const;
  at::Tensor kl_to_normal(double mean, double sd) const;

  // Without gradients. set_natural() returns false and changes nothing when `from` is no Gaussian:
  // not finite, or a precision that is not positive definite; or when its numbers do not determine
  // one, as of values so correlated that the digits of their type do not suffice.
  virtual NaturalParameters natural() const = 0;
  virtual bool set_natural(const NaturalParameters& from) = 0;

 protected:
  // Throws std::invalid_argument when `mean` is no vector of at least one finite number.
  GaussianPosterior(const at::Tensor& mean, const at::Tensor& scale);
  void check_values(const at::Tensor& z) const;  // throws std::invalid_argument: not [..., D]

  virtual at::Tensor spread(const at::Tensor& noise) const = 0;  // L ε of each row

  at::Tensor mean_;
  at::Tensor scale_;
};

// Independent values. scale: [D], the logarithms of the standard deviations.
class MeanFieldGaussian : public GaussianPosterior {
 public:
  // Begins at this mean with one standard deviation, in the type and on the device of `mean`.
  explicit MeanFieldGaussian(const at::Tensor& mean, double sd = 0.1);

  at::Tensor variance() const override;
  at::Tensor covariance() const override;
  at::Tensor entropy() const override;
  at::Tensor log_density(const at::Tensor& z) const override;
  NaturalParameters natural() const override;
  bool set_natural(const NaturalParameters& from) override;

 private:
  at::Tensor spread(const at::Tensor& noise) const override;
};

// Any covariance S = L Lᵀ, with L = diag(exp(s)) (I + U / √D). scale: [D, D] has s on its diagonal
// and U below it; the part above is not used. So a step of Adam, which moves every number by about
// the learning rate, moves a row of L by that part of its length, however small the deviations are.
class FullGaussian : public GaussianPosterior {
 public:
  // In float32 or float64.
  explicit FullGaussian(const at::Tensor& mean, double sd = 0.1);

  at::Tensor factor() const;  // L
  at::Tensor variance() const override;
  at::Tensor covariance() const override;
  at::Tensor entropy() const override;
  at::Tensor log_density(const at::Tensor& z) const override;
  NaturalParameters natural() const override;
  bool set_natural(const NaturalParameters& from) override;

 private:
  at::Tensor spread(const at::Tensor& noise) const override;
  double unit() const;  // of what stands below the diagonal
};

}  // namespace dpwa
