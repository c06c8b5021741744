#pragma once

#include <cstdint>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/inference/gaussian_posterior.h"
#include "adapters/torch_types.h"
#include "dpwa/config/config.h"

namespace dpwa {

// Gossip in natural parameters: in the place of the adapter's start(), step() and finish(). Each
// GaussianPosterior of the model is in its natural form (S⁻¹ m, S⁻¹) whenever the adapter reads or
// blends the parameters, so every snapshot that a peer sees has that form: those of the start, of
// each step and of the final average. The optimizer sees the usual form. Everything else in the
// model travels as it is. All nodes of a run use it, or none: it marks the model, so that nodes of
// different forms refuse each other.
//
// With gossip.pull_probability: 0 and nodes that have converged on K · NLL_k + KL, the final
// average is exact for FullGaussian posteriors of linear Gaussian models. With pulls, blends are
// in natural form as well.
//
// Under other back ends, which average gradients, the calls go to the adapter unchanged. The model
// must outlive it. The training thread.
class NaturalExchange {
 public:
  // The mark (Adapter::mark_model), for programs that also run without it.
  static constexpr const char* mark = "what gossip averages";

  // Before adapter.start(). Throws std::invalid_argument under gossip when the model has no
  // GaussianPosterior.
  NaturalExchange(const Config& config, Adapter& adapter, torch::nn::Module& model);

  void start();
  StepReport step(torch::optim::Optimizer& optimizer, const at::Tensor& loss);
  FinishReport finish();

  // Blends after which a precision was not positive definite. That posterior then keeps what it
  // had before.
  std::uint64_t refused() const { return refused_; }

 private:
  class OnTheWire;

  Adapter& adapter_;
  std::vector<GaussianPosterior*> posteriors_;  // empty: not under gossip
  std::uint64_t refused_ = 0;
};

}  // namespace dpwa
