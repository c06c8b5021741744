#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "adapters/inference/elbo.h"
#include "adapters/inference/gaussian_posterior.h"
#include "examples/svi/options.h"

namespace dpwa::svi {

// A Bayesian regression with one hidden layer of tanh units, or a linear one. It has two outputs,
// the mean of y and the logarithm of its standard deviation, so that the noise may depend on the
// inputs. All weights have the prior N(0, 1); the outputs are divided by the root of the number of
// units. q is one Gaussian over all weights.
class Network : public torch::nn::Module {
 public:
  // The same for the same seed.
  Network(std::int64_t inputs, std::int64_t hidden, PosteriorKind posterior, std::uint64_t seed);

  // Of each row under each draw of the weights: [draws, rows].
  struct Outputs {
    at::Tensor mean, log_sd;
  };
  Outputs forward(const at::Tensor& weights, const at::Tensor& x) const;

  // Of a batch, by draws of the weights from the default generator.
  ElboTerms terms(const at::Tensor& x, const at::Tensor& y, std::int64_t draws) const;

  const GaussianPosterior& posterior() const { return *posterior_; }

 private:
  std::int64_t inputs_;
  std::int64_t hidden_;
  std::shared_ptr<GaussianPosterior> posterior_;
};

// The predictive distribution: a mixture with one normal distribution per draw of the weights.
struct Predictive {
  // `weights`: draws, as rows.
  Predictive(const Network& network, const at::Tensor& weights, const at::Tensor& x);

  at::Tensor log_density(const at::Tensor& y) const;
  // P(y' < y), which is uniform over the rows of a calibrated prediction.
  at::Tensor rank_of(const at::Tensor& y) const;

  Network::Outputs outputs;
  at::Tensor mean;      // [rows]
  at::Tensor model_sd;  // of the mean alone: what more data would remove
  at::Tensor sd;        // of y
};

}  // namespace dpwa::svi
