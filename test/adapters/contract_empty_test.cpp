#include <torch/types.h>

#include "adapters/adapter.h"
#include "test/adapters/contract.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/small_net.h"

// What a training loop may rely on, whatever back end the cluster file names: tensors without
// elements, models that have nothing else, and models without parameters.
namespace dpwa {
namespace {

using test::BackEnd;
using test::backward;
using test::Circle;
using test::finite;
using test::for_every_back_end;
using test::momentum_sgd;
using test::Net;
using test::Participant;
using test::run_nodes;

// Tensors without elements before and behind those of the others.
struct NetWithNothing : Net {
  explicit NetWithNothing(std::uint64_t seed, at::Device device) : Net(seed, device) {
    const auto options = torch::TensorOptions().device(device);
    used = register_parameter("a_used", torch::zeros({0, 3}, options));
    unused = register_parameter("unused", torch::zeros({0}, options));
    register_buffer("nothing", torch::zeros({2, 0}, options));
  }
  torch::Tensor used;
  torch::Tensor unused;
};

struct EmptyParameters : torch::nn::Module {
  explicit EmptyParameters(std::size_t count, at::Device device) {
    for (std::size_t i = 0; i < count; ++i) {
      register_parameter("p" + std::to_string(i),
                         torch::zeros({0}, torch::TensorOptions().device(device)));
    }
  }
};

}  // namespace

TEST_CASE("a model with tensors that have no elements trains like any other") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      NetWithNothing model(3 + node.index, device);
      const auto optimizer = momentum_sgd(model);
      Circle circle(5 + node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      const auto before = model.out->weight.detach().clone();
      for (int i = 0; i < 3; ++i) {
        optimizer->zero_grad();
        const auto loss = circle.loss(model) + model.used.sum();
        loss.backward();
        adapter->step(*optimizer, loss);
      }
      CHECK(finite(model));
      CHECK_FALSE(torch::equal(model.out->weight, before));
      CHECK(model.used.numel() == 0);
      adapter->finish();
      CHECK(finite(model));
    });
  });
}

TEST_CASE("a model whose parameters have no elements starts, steps and ends") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      EmptyParameters model(2, device);
      torch::optim::SGD optimizer(model.parameters(), 0.1);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      for (int i = 0; i < 3; ++i) {
        optimizer.zero_grad();
        auto loss = torch::ones({}, torch::TensorOptions().device(device));
        for (const auto& parameter : model.parameters()) loss = loss + parameter.sum();
        loss.backward();
        adapter->step(optimizer, loss);
      }
      adapter->finish();
    });
  });
}

TEST_CASE("a model without parameters is refused in one line") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      EmptyParameters model(0, device);
      CHECK_THROWS_WITH(make_adapter(node.config, model), "the model has no parameters to share");
    });
  });
}

}  // namespace dpwa
