#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/adapter.h"
#include "dpwa/net/free_ports.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

// Nodes of one process that train a small net with backend: collective.
namespace dpwa::test {

// Where models and data are, by the program of the tests: backend collective takes host memory
// alone.
c10::Device training_device();

using torch::Tensor;
using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<Tensor>)>;

struct Net : torch::nn::Module {
  explicit Net(std::uint64_t seed) {
    torch::manual_seed(static_cast<std::int64_t>(seed));
    first = register_module("first", torch::nn::Linear(6, 16));
    second = register_module("second", torch::nn::Linear(16, 3));
    unused = register_module("unused", torch::nn::Linear(4, 4));
    frozen = register_parameter("frozen", torch::randn({3}), /*requires_grad=*/false);
    to(training_device());
  }
  Tensor forward(const Tensor& x) { return second(torch::tanh(first(x))) + frozen; }
  torch::nn::Linear first{nullptr}, second{nullptr}, unused{nullptr};
  Tensor frozen;
};

struct Data {
  Tensor x, y;
};

inline Data data_of(int rows) {
  torch::manual_seed(77);
  const Tensor x = torch::randn({rows, 6});
  return {x.to(training_device()), torch::randint(3, {rows}).to(training_device())};
}

inline Tensor loss_of(Net& net, const Data& data, std::int64_t from, std::int64_t count) {
  return torch::cross_entropy_loss(net.forward(data.x.narrow(0, from, count)),
                                   data.y.narrow(0, from, count));
}

inline Tensor flat(const torch::nn::Module& net) {
  std::vector<Tensor> parts;
  for (const auto& tensor : net.parameters()) parts.push_back(tensor.detach().reshape({-1}));
  for (const auto& tensor : net.buffers())
    parts.push_back(tensor.detach().reshape({-1}).to(torch::kFloat));
  return torch::cat(parts).clone();
}

using Tune = std::function<void(Config&)>;

inline std::vector<Config> collective_configs(int nodes, const Tune& tune = {}) {
  const auto ports = net::free_ports(static_cast<std::size_t>(nodes));
  std::vector<Config> configs;
  for (int rank = 0; rank < nodes; ++rank) {
    configs.push_back(loopback_config(ports, static_cast<std::size_t>(rank)));
    configs.back().backend = Backend::collective;
    if (tune) tune(configs.back());
  }
  return configs;
}

// What each node of a cluster does; all at once.
inline void run(int nodes, const std::function<void(int, const Config&)>& body,
                const Tune& tune = {}) {
  const auto configs = collective_configs(nodes, tune);
  at_once(configs.size(), [&](std::size_t i) { body(static_cast<int>(i), configs[i]); });
}

// So many steps of one node, each on its 32 rows of `data`.
inline void make_steps(Adapter& adapter, int rank, Net& model, torch::optim::Optimizer& optimizer,
                       const Data& data, int steps) {
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(model, data, rank * 32, 32);
    loss.backward();
    adapter.step(optimizer, loss);
  }
}

// Models are made one after the other: the generator of the process is shared.
template <typename Model>
std::vector<std::shared_ptr<Model>> models_of(int nodes, std::uint64_t seed) {
  std::vector<std::shared_ptr<Model>> models;
  for (int rank = 0; rank < nodes; ++rank) models.push_back(std::make_shared<Model>(seed));
  return models;
}

using NamedOptimizer = std::pair<std::string, MakeOptimizer>;

template <class Optimizer, class Options>
NamedOptimizer named(const char* name, const Options& options) {
  return {name, [options](std::vector<Tensor> parameters) {
            return std::make_unique<Optimizer>(std::move(parameters), options);
          }};
}

inline const std::vector<NamedOptimizer>& optimizers() {
  using namespace torch::optim;
  static const std::vector<NamedOptimizer> all = {
      named<SGD>("sgd", SGDOptions(0.1)),
      named<SGD>("momentum", SGDOptions(0.05).momentum(0.9).weight_decay(1e-3)),
      named<Adam>("adam", AdamOptions(0.01)),
  };
  return all;
}

inline double relative_distance(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace dpwa::test
