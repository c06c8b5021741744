#include "adapters/inference/densities.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/inference/split_data.h"

namespace dpwa {
namespace {

// [N, 1] with [N] would give N² densities, and a sum over them is no likelihood of the rows.
void check_shapes(const char* density, const std::vector<at::Tensor>& arguments) {
  std::string shapes;
  std::int64_t most = 1;
  std::vector<std::int64_t> together;
  for (const at::Tensor& argument : arguments) {
    if (!argument.defined())
      throw std::invalid_argument(std::string(density) + ": an argument is undefined");
    shapes += (shapes.empty() ? "" : ", ") + words_of_shape(argument);
    most = std::max(most, argument.numel());
    const auto rank = static_cast<std::size_t>(argument.dim());
    if (together.size() < rank) together.insert(together.begin(), rank - together.size(), 1);
    for (std::size_t i = 0; i < rank; ++i) {
      std::int64_t& extent = together[together.size() - rank + i];
      extent = std::max(extent, argument.size(static_cast<std::int64_t>(i)));
    }
  }
  std::int64_t all = 1;
  for (const std::int64_t extent : together) all *= extent;
  if (all <= most) return;
  throw std::invalid_argument(std::string(density) + ": the shapes " + shapes + " would give " +
                              std::to_string(all) +
                              " densities; accepted: one argument with the shape of the result");
}

}  // namespace

at::Tensor log_normal(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& log_sd) {
  check_shapes("log_normal", {x, mean, log_sd});
  const double half_log_two_pi = 0.5 * std::log(2 * std::numbers::pi);
  return -0.5 * ((x - mean) * torch::exp(-log_sd)).square() - log_sd - half_log_two_pi;
}

at::Tensor log_bernoulli(const at::Tensor& x, const at::Tensor& logit) {
  check_shapes("log_bernoulli", {x, logit});
  // Elsewhere a look at the values would wait for the device.
  if (x.is_cpu() && !((x == 0).logical_or(x == 1)).all().item<bool>())
    throw std::invalid_argument("log_bernoulli: a value is neither 0 nor 1; accepted: these two");
  const auto all = torch::broadcast_tensors({x, logit});
  return -torch::binary_cross_entropy_with_logits(all[1], all[0], {}, {}, at::Reduction::None);
}

at::Tensor log_categorical(const at::Tensor& x, const at::Tensor& logits) {
  constexpr auto no_class = std::numeric_limits<std::int64_t>::min();  // that would be left out
  return -torch::cross_entropy_loss(logits, x, {}, at::Reduction::None, no_class);
}

// The constant of LibTorch's loss is an approximation (Stirling), so it is left out there.
at::Tensor log_poisson(const at::Tensor& x, const at::Tensor& log_rate) {
  check_shapes("log_poisson", {x, log_rate});
  return -torch::poisson_nll_loss(log_rate, x, /*log_input=*/true, /*full=*/false, /*eps=*/0,
                                  at::Reduction::None) -
         torch::lgamma(x + 1);
}

}  // namespace dpwa
