#include <torch/nn/modules/embedding.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "test/adapters/contract.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/small_net.h"

// What a training loop may rely on, whatever back end the cluster file names: what it may change or
// end between two calls.
namespace dpwa {
namespace {

using test::BackEnd;
using test::backward;
using test::Circle;
using test::close;
using test::finite;
using test::for_every_back_end;
using test::momentum_sgd;
using test::Net;
using test::Participant;
using test::run_nodes;

// A change of the model after make_adapter, and the tensor that the error has to name.
struct Change {
  std::string name;
  std::function<void(Net&)> make;
  std::string names;
};

std::vector<Change> changes() {
  const auto elsewhere = [](torch::Tensor tensor) { tensor.set_data(tensor.detach().clone()); };
  return {
      {"moved to another dtype", [](Net& model) { model.to(torch::kDouble); }, "'hidden.weight'"},
      {"loaded in the middle", [=](Net& model) { elsewhere(model.norm->weight); }, "'norm.weight'"},
      {"a buffer loaded", [=](Net& model) { elsewhere(model.norm->running_var); },
       "'norm.running_var'"},
      {"another shape in the same memory",
       [](Net& model) { model.norm->bias.set_data(model.norm->bias.detach().view({4, 4})); },
       "'norm.bias'"},
      {"unfrozen", [](Net& model) { model.hidden->bias.requires_grad_(true); }, "'hidden.bias'"},
      {"a new parameter",
       [](Net& model) { model.norm->register_parameter("extra", torch::zeros({2})); },
       "'norm.extra'"},
      {"a new buffer", [](Net& model) { model.register_buffer("extra", torch::zeros({2})); },
       "'extra'"},
      {"another layer",
       [](Net& model) { model.norm = model.replace_module("norm", torch::nn::BatchNorm1d(16)); },
       "'norm."},
  };
}

// A layer of rows of which a batch uses few.
struct Words : torch::nn::Module {
  explicit Words(bool sparse) {
    const torch::NoGradGuard no_grad;
    table->weight.copy_(torch::arange(24, torch::kFloat).view({12, 2}) / 24);
    out->weight.fill_(0.5);
    out->bias.zero_();
    table->options.sparse(sparse);
  }
  torch::Tensor loss(int step) {
    const auto words = torch::tensor({step % 3, step % 5, step % 5}, torch::kLong);
    return (out(table(words)) - 1).square().mean();
  }
  torch::nn::Embedding table = register_module("table", torch::nn::Embedding(12, 2));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(2, 1));
};

// Of nodes that end after a few steps: under load their models may still lie so far apart that the
// final average leaves one out.
Config unbounded(Config config) {
  config.gossip.firewall.distance = DistancePolicy::warn;
  return config;
}

}  // namespace

TEST_CASE("a model that is changed after make_adapter is refused by the tensor's name") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    for (const Change& change : changes()) {
      CAPTURE(change.name);
      run_nodes(back_end, [&](Participant& node) {
        Net model(3, device);
        model.hidden->bias.requires_grad_(false);
        const auto optimizer = momentum_sgd(model);
        Circle circle(3, device);
        const auto adapter = make_adapter(node.config, model);
        adapter->start();
        node.wait_for_all();
        adapter->step(*optimizer, backward(*optimizer, model, circle));
        change.make(model);
        const auto refused = doctest::Contains(change.names.c_str());
        CHECK_THROWS_WITH_AS(adapter->step(*optimizer, torch::Tensor()), refused, std::logic_error);
        CHECK_THROWS_WITH_AS(adapter->update_send(torch::Tensor()), refused, std::logic_error);
        const bool has_network = back_end.servers > 0 || node.config.backend == Backend::gossip ||
                                 node.config.backend == Backend::collective;
        if (has_network) CHECK_THROWS_WITH_AS(adapter->finish(), refused, std::logic_error);
      });
    }
  });
}

// Momentum and weight decay leave it alone, too, unless other nodes train it meanwhile.
TEST_CASE("a layer that was trained may be frozen for some steps, as in adversarial training") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      const bool in_step = back_end.nodes == 1 || node.config.backend == Backend::collective ||
                           (node.config.backend == Backend::kvstore &&
                            node.config.kvstore.type == KvstoreType::dist_sync);
      Net model(node.index, device);
      const auto parameters = model.norm->parameters();
      torch::optim::SGD optimizer(model.parameters(),
                                  torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
      Circle circle(node.index, device);
      const Config config = unbounded(node.config);
      const auto adapter = make_adapter(config, model);
      adapter->start();
      node.wait_for_all();
      for (int step = 0; step < 12; ++step) {
        const bool trains = step % 4 < 2;
        for (auto parameter : parameters) parameter.requires_grad_(trains);
        const at::Tensor before = parameters.front().detach().clone();
        adapter->step(optimizer, backward(optimizer, model, circle));
        CAPTURE(step);
        CAPTURE(back_end.name);
        if (in_step) CHECK(torch::equal(parameters.front(), before) != trains);
      }
      node.wait_for_all();
      CHECK(finite(model));
      CHECK(adapter->finish().participants == back_end.nodes);
    });
  });
}

TEST_CASE(
    "values that a program writes count from then on, or are refused where servers have them") {
  const auto write = [](const Net& model) {
    const torch::NoGradGuard no_grad;
    for (auto& tensor : model.parameters()) tensor.mul_(0.5);
    for (auto& tensor : model.buffers()) tensor.mul_(2);
  };
  for_every_back_end([&](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      Net plain(3, device);
      const auto optimizer = momentum_sgd(model);
      const auto plain_optimizer = momentum_sgd(plain);
      Circle circle(3, device);
      Circle plain_circle(3, device);
      const auto adapter = make_adapter(node.config, model);
      const auto step = [&] {
        adapter->step(*optimizer, backward(*optimizer, model, circle));
        backward(*plain_optimizer, plain, plain_circle);
        plain_optimizer->step();
      };
      write(model);  // before start() under every back end
      write(plain);
      adapter->start();
      node.wait_for_all();
      for (int i = 0; i < 3; ++i) step();
      write(model);
      write(plain);
      model.eval();
      model.train();
      if (back_end.servers > 0 && back_end.optimizer_elsewhere) {
        const doctest::Contains refused(
            "the model's tensor 'hidden.weight' was written by the program");
        CHECK_THROWS_WITH_AS(adapter->average_gradients(), refused, std::logic_error);
        CHECK_THROWS_WITH_AS(adapter->step(*optimizer, {}), refused, std::logic_error);
        CHECK_THROWS_WITH_AS(adapter->update_send({}), refused, std::logic_error);
        CHECK_THROWS_WITH_AS(adapter->finish(), refused, std::logic_error);
        return;
      }
      for (int i = 0; i < 3; ++i) step();
      CHECK(close(model, plain));
      CHECK_NOTHROW(adapter->finish());
    });
  });
}

TEST_CASE("the optimizer may be replaced by another one between two steps, and end before finish") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    for (const bool averages : {false, true}) {
      CAPTURE(averages);
      run_nodes(back_end, [&](Participant& node) {
        Net model(node.index, device);
        Circle circle(node.index, device);
        const Config config = unbounded(node.config);
        const auto adapter = make_adapter(config, model);
        adapter->start();
        node.wait_for_all();
        // Each step with an object of its own: what is kept of the last one, other than its values,
        // is memory that was freed and given to another.
        for (int step = 0; step < 12; ++step) {
          std::unique_ptr<torch::optim::Optimizer> optimizer;
          for (auto& parameter : model.parameters()) parameter.mutable_grad().reset();
          const auto loss = circle.loss(model);
          loss.backward();
          if (averages) adapter->average_gradients();
          if (step < 6) {
            optimizer = momentum_sgd(model);
          } else {
            optimizer = std::make_unique<torch::optim::Adam>(model.parameters());
          }
          adapter->step(*optimizer, loss);
        }
        node.wait_for_all();
        CHECK(finite(model));
        CHECK(adapter->finish().participants == back_end.nodes);
      });
    }
  });
}

TEST_CASE("a model with sparse gradients trains as one with dense ones") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1 || !device.is_cpu()) return;  // Words is in host memory
    for (const bool averages : {false, true}) {
      CAPTURE(averages);
      run_nodes(back_end, [&](Participant& node) {
        if (node.config.backend == Backend::collective) return;  // differing_nodes_test.cpp
        Words model(/*sparse=*/true);
        Words plain(/*sparse=*/false);
        torch::optim::SGD optimizer(model.parameters(), 0.1);
        torch::optim::SGD plain_optimizer(plain.parameters(), 0.1);
        const auto adapter = make_adapter(node.config, model);
        adapter->start();
        node.wait_for_all();
        for (int step = 0; step < 10; ++step) {
          optimizer.zero_grad();
          const auto loss = model.loss(step);
          loss.backward();
          if (averages) adapter->average_gradients();
          adapter->step(optimizer, loss);
          plain_optimizer.zero_grad();
          plain.loss(step).backward();
          plain_optimizer.step();
        }
        CHECK(torch::allclose(model.table->weight, plain.table->weight, 1e-5, 1e-6));
        CHECK(torch::allclose(model.out->weight, plain.out->weight, 1e-5, 1e-6));
        adapter->finish();
      });
    }
  });
}

TEST_CASE("a model whose parameters are all frozen is refused by one line") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      for (auto& parameter : model.parameters()) parameter.requires_grad_(false);
      CHECK_THROWS_WITH_AS(make_adapter(node.config, model),
                           doctest::Contains("all 6 parameters of the model are frozen"),
                           std::invalid_argument);
    });
  });
}

}  // namespace dpwa
