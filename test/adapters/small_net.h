#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace dpwa::test {

// A classifier with a layer of each common kind, the same for the same seed.
struct Net : torch::nn::Module {
  explicit Net(std::uint64_t seed, at::Device device = at::kCPU) {
    torch::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) parameter.uniform_(-0.5, 0.5, generator);
    to(device);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::log_softmax(out(torch::relu(norm(hidden(x)))), 1);
  }
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(2, 16));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(16));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(16, 2));
};

// Points of the plane, inside or outside of a circle, the same for the same seed.
class Circle {
 public:
  Circle(std::uint64_t seed, at::Device device)
      : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)), device_(device) {}

  torch::Tensor loss(Net& model) {
    const auto data = torch::rand({32, 2}, generator_) * 2 - 1;
    const auto target = (data.square().sum(1) < 0.6).to(torch::kLong);
    return torch::nll_loss(model.forward(data.to(device_)), target.to(device_));
  }

 private:
  torch::Generator generator_;
  at::Device device_;
};

inline torch::Tensor backward(torch::optim::Optimizer& optimizer, Net& model, Circle& circle) {
  optimizer.zero_grad();
  auto loss = circle.loss(model);
  loss.backward();
  return loss;
}

// Of one more batch: its gradients are added.
inline torch::Tensor add_backward(Net& model, Circle& circle) {
  auto loss = circle.loss(model);
  loss.backward();
  return loss;
}

inline std::unique_ptr<torch::optim::SGD> momentum_sgd(Net& model) {
  return std::make_unique<torch::optim::SGD>(model.parameters(),
                                             torch::optim::SGDOptions(0.1).momentum(0.9));
}

inline std::vector<torch::Tensor> tensors_of(const Net& model) {
  auto tensors = model.parameters();
  for (const auto& buffer : model.buffers()) tensors.push_back(buffer);
  return tensors;
}

inline bool equal(const Net& a, const Net& b) {
  return std::ranges::equal(tensors_of(a), tensors_of(b), [](const auto& x, const auto& y) {
    return torch::equal(x.cpu(), y.cpu());
  });
}

// Equal but for what another memory alignment does to a matrix product.
inline bool close(const Net& a, const Net& b) {
  return std::ranges::equal(tensors_of(a), tensors_of(b), [](const auto& x, const auto& y) {
    return torch::allclose(x.cpu(), y.cpu(), 1e-4, 1e-5);
  });
}

inline bool finite(const Net& model) {
  return std::ranges::all_of(
      model.parameters(), [](const auto& x) { return x.isfinite().all().template item<bool>(); });
}

}  // namespace dpwa::test
