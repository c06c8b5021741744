#include "adapters/inference/densities.h"

#include <torch/types.h>

#include <cmath>
#include <numbers>

namespace dpwa {

at::Tensor log_normal(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& log_sd) {
  const double half_log_two_pi = 0.5 * std::log(2 * std::numbers::pi);
  return -0.5 * ((x - mean) * torch::exp(-log_sd)).square() - log_sd - half_log_two_pi;
}

at::Tensor log_bernoulli(const at::Tensor& x, const at::Tensor& logit) {
  const auto all = torch::broadcast_tensors({x, logit});
  return -torch::binary_cross_entropy_with_logits(all[1], all[0], {}, {}, at::Reduction::None);
}

at::Tensor log_categorical(const at::Tensor& x, const at::Tensor& logits) {
  return -torch::cross_entropy_loss(logits, x, {}, at::Reduction::None);
}

// The constant of LibTorch's loss is an approximation (Stirling), so it is left out there.
at::Tensor log_poisson(const at::Tensor& x, const at::Tensor& log_rate) {
  return -torch::poisson_nll_loss(log_rate, x, /*log_input=*/true, /*full=*/false, /*eps=*/0,
                                  at::Reduction::None) -
         torch::lgamma(x + 1);
}

}  // namespace dpwa
