// A LibTorch program that trains as one node of a dpwa cluster:
//   dpwa_embedded CLUSTER.yaml NODE
// Start one process for every node of the file. Everything but the marked lines is plain LibTorch.
#include <torch/torch.h>

#include <cstdio>
#include <exception>

#include "adapters/adapter.h"          // dpwa
#include "dpwa/config/node_threads.h"  // dpwa

struct Net : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::log_softmax(scores(torch::relu(hidden(x))), 1);
  }
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(2, 32));
  torch::nn::Linear scores = register_module("scores", torch::nn::Linear(32, 2));
};

struct Batch {
  torch::Tensor data, target;
};

// Points of the plane: inside or outside of a circle.
Batch draw(int size) {
  auto data = torch::rand({size, 2}) * 2 - 1;
  return {data, (data.square().sum(1) < 0.6).to(torch::kLong)};
}

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: dpwa_embedded CLUSTER.yaml NODE\n"), 2;
  auto model = std::make_shared<Net>();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  auto config = dpwa::load_config(argv[1], argv[2]);  // dpwa
  at::set_num_threads(dpwa::node_threads(config));    // for nodes that share a host
  auto adapter = dpwa::make_adapter(config, *model);  // dpwa: the YAML decides the back end
  adapter->start();                                   // dpwa: common weights everywhere
  for (int step = 1; step <= 500; ++step) {
    auto batch = draw(32);
    optimizer.zero_grad();
    auto loss = torch::nll_loss(model->forward(batch.data), batch.target);
    loss.backward();
    adapter->average_gradients();  // dpwa: only for what follows, which needs the final gradients
    torch::nn::utils::clip_grad_norm_(model->parameters(), 5.0);
    dpwa::StepReport report = adapter->step(optimizer, loss);  // dpwa: instead of optimizer.step()
    if (step % 100 == 0)
      std::printf("step %d loss %.4f %s %s\n", step, loss.item<double>(),
                  dpwa::to_string(report.outcome).data(), report.peer.c_str());
  }
  adapter->finish();  // dpwa: drain; global average when configured

  auto test = draw(10000);
  auto right = model->forward(test.data).argmax(1).eq(test.target).to(torch::kFloat);
  std::printf("accuracy %.4f\n", right.mean().item<double>());
  if (std::fflush(stdout)) return std::fputs("dpwa_embedded: cannot write the result\n", stderr), 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "dpwa_embedded: %s\n", error.what()), 1;
}
