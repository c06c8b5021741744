#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace dpwa::test {

// With statistics and with randomness.
struct TrainingNet : torch::nn::Module {
  explicit TrainingNet(std::int64_t seed) {
    torch::manual_seed(seed);
    first = register_module("first", torch::nn::Linear(6, 32));
    norm = register_module("norm", torch::nn::BatchNorm1d(32));
    dropout = register_module("dropout", torch::nn::Dropout(0.3));
    second = register_module("second", torch::nn::Linear(32, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return second(dropout(torch::relu(norm(first(x)))));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};
};

// One whole step, of made-up data.
inline double step(TrainingNet& net, torch::optim::Optimizer& optimizer, std::int64_t batch) {
  optimizer.zero_grad();
  const auto x = torch::randn({batch, 6});
  const auto loss = torch::cross_entropy_loss(net.forward(x), torch::randint(3, {batch}));
  loss.backward();
  optimizer.step();
  return loss.item<double>();
}

inline std::unique_ptr<torch::optim::Optimizer> optimizer_of(TrainingNet& net, bool adam) {
  if (adam)
    return std::make_unique<torch::optim::Adam>(net.parameters(), torch::optim::AdamOptions(0.01));
  return std::make_unique<torch::optim::SGD>(net.parameters(),
                                             torch::optim::SGDOptions(0.1).momentum(0.9));
}

inline std::vector<torch::Tensor> copy_of(const TrainingNet& net) {
  std::vector<torch::Tensor> all;
  for (const auto& parameter : net.parameters()) all.push_back(parameter.detach().clone());
  for (const auto& buffer : net.buffers()) all.push_back(buffer.clone());
  return all;
}

inline bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) equal = torch::equal(a[i], b[i]);
  return equal;
}

}  // namespace dpwa::test
