// A LibTorch program that trains through the adapter, as a cluster of one node.
#include <adapters/adapter.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdio>

int main() {
  torch::nn::Linear model(2, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);

  dpwa::NodeEntry node;
  node.name = "w1";  // on 127.0.0.1, port chosen by the system
  dpwa::Config config;
  config.nodes = {node};
  config.self = node.name;

  auto adapter = dpwa::make_adapter(config, *model);
  adapter->start();
  double loss = 0;
  for (int step = 0; step < 100; ++step) {
    const auto data = torch::rand({16, 2});
    optimizer.zero_grad();
    auto error = (model->forward(data) - data.sum(1, true)).square().mean();
    error.backward();
    adapter->step(optimizer, error);
    loss = error.item<double>();
  }
  adapter->finish();
  std::printf("loss %.4f\n", loss);
  return loss < 0.05 ? 0 : 1;
}
