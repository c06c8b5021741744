#pragma once

#include <ATen/core/Tensor.h>

namespace dpwa {

// Log densities, one for each element of the arguments, which are broadcast to the shape of one of
// them: other shapes throw std::invalid_argument, such as [N, 1] with [N]. What LibTorch has as a
// loss is taken from there.

// The log density of `x` under a normal distribution with that mean and log standard deviation.
at::Tensor log_normal(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& log_sd);

// The log probability of `x` in {0, 1}, where `logit` is log(p / (1 - p)).
at::Tensor log_bernoulli(const at::Tensor& x, const at::Tensor& logit);

// The log probability of classes `x`[N]; row n of `logits`[N, C] has a score for each class.
at::Tensor log_categorical(const at::Tensor& x, const at::Tensor& logits);

// The log probability of counts `x`; `log_rate` is the logarithm of the expected count.
at::Tensor log_poisson(const at::Tensor& x, const at::Tensor& log_rate);

}  // namespace dpwa
