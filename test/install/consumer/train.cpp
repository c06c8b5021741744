// A LibTorch program that trains through the adapter on two devices, as a cluster of one node.
#include <adapters/adapter.h>
#include <adapters/parallel/device_replicas.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdint>
#include <cstdio>
#include <memory>

int main() {
  torch::nn::Linear model(2, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);

  dpwa::NodeEntry node;
  node.name = "w1";  // on 127.0.0.1, port chosen by the system
  dpwa::Config config;
  config.nodes = {node};
  config.self = node.name;

  dpwa::DeviceReplicas<torch::nn::LinearImpl> replicas(
      *model, {c10::kCPU, c10::kCPU}, [] { return std::make_shared<torch::nn::LinearImpl>(2, 1); });
  auto adapter = dpwa::make_adapter(config, *model);
  adapter->start();
  double loss = 0;
  for (int step = 0; step < 100; ++step) {
    const auto data = torch::rand({16, 2});
    optimizer.zero_grad();
    auto error = replicas.loss(16, [&](auto& net, c10::Device, const dpwa::ItemRange& part) {
      const auto own = data.narrow(0, static_cast<std::int64_t>(part.from),
                                   static_cast<std::int64_t>(part.count));
      return (net.forward(own) - own.sum(1, true)).square().mean();
    });
    error.backward();
    adapter->step(optimizer, error);
    loss = error.item<double>();
  }
  adapter->finish();
  std::printf("loss %.4f\n", loss);
  return loss < 0.05 ? 0 : 1;
}
