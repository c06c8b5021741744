#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/gossip/gossip_adapter.h"
#include "dpwa/net/free_ports.h"
#include "test/adapters/contract.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/small_net.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

// Steps that a program skips, as with a gradient scaler, whatever back end the file names.
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

bool skips(int step) {
  return step % 4 == 1;
}

// Nobody has anything but what the step made, so that it can be compared.
bool is_alone(const BackEnd& back_end) {
  return back_end.nodes == 1;
}

bool all_step_together(const Config& config) {
  return config.backend == Backend::collective ||
         (config.backend == Backend::kvstore && config.kvstore.type == KvstoreType::dist_sync);
}

}  // namespace

TEST_CASE("a skipped step changes no weight and no optimizer, and is counted") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      Net plain(3, device);
      const auto optimizer = momentum_sgd(model);
      const auto plain_optimizer = momentum_sgd(plain);
      Circle circle(node.index, device);
      Circle plain_circle(node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      std::uint64_t skipped = 0;
      for (int step = 0; step < 12; ++step) {
        CAPTURE(step);
        const auto loss = backward(*optimizer, model, circle);
        adapter->average_gradients();
        backward(*plain_optimizer, plain, plain_circle);
        const double clock = adapter->resume_state().clock;
        const torch::Tensor weight = model.out->weight.detach().clone();
        StepReport report;
        if (skips(step)) {
          report = adapter->skip_step(*optimizer, loss);
          ++skipped;
          if (is_alone(back_end) || all_step_together(node.config))
            CHECK(torch::equal(model.out->weight, weight));
          // A blend moves the clock.
          if (node.config.backend == Backend::gossip && report.outcome != Outcome::mixed)
            CHECK(report.clock == clock);
        } else {
          report = adapter->step(*optimizer, loss);
          plain_optimizer->step();
          CHECK_FALSE(torch::equal(model.out->weight, weight));
        }
        CHECK(report.made);
        CHECK(report.skipped_steps == skipped);
      }
      if (is_alone(back_end)) CHECK(close(model, plain));
      CHECK(finite(model));
      node.wait_for_all();
      CHECK(adapter->finish().participants == back_end.nodes);
      const torch::Tensor weight = model.out->weight.detach().clone();
      backward(*optimizer, model, circle);
      CHECK(adapter->skip_step(*optimizer, {}).skipped_steps == skipped + 1);
      CHECK(torch::equal(model.out->weight, weight));
    });
  });
}

TEST_CASE("a skipped step blends what has come, and does not read its loss") {
  const auto ports = net::free_ports(2);
  std::array<torch::nn::Module, 2> models;
  std::vector<std::unique_ptr<GossipAdapter>> nodes;
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].register_parameter("weight", torch::zeros({8}));
    Config config = test::loopback_config(ports, i);
    config.gossip.step_budget = config.gossip.timeout;
    nodes.push_back(std::make_unique<GossipAdapter>(std::move(config), models[i]));
  }
  test::at_once(nodes.size(), [&](std::size_t i) { nodes[i]->start(); });
  {
    const torch::NoGradGuard no_grad;
    models[1].parameters()[0].fill_(2);
  }
  for (const auto& node : nodes) node->gossip().publish([] { return 1.0; });
  nodes[0]->gossip().begin_pull();
  torch::optim::SGD optimizer(models[0].parameters(), 1.0);
  const auto unreadable = torch::empty({}, torch::kMeta);
  CHECK(nodes[0]->skip_step(optimizer, unreadable).outcome == Outcome::mixed);
  CHECK(models[0].parameters()[0].eq(1).all().item<bool>());
}

TEST_CASE("a worker of servers skips a step alone, and they take those of the others") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (!back_end.optimizer_elsewhere || back_end.servers == 0) return;
    run_nodes(back_end, [&](Participant& node) {
      torch::nn::Module model;
      auto weight =
          model.register_parameter("weight", torch::zeros({3}, torch::TensorOptions(device)));
      torch::optim::SGD optimizer(model.parameters(), 1.0);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      std::uint64_t skipped = 0;
      for (int step = 0; step < 4; ++step) {
        optimizer.zero_grad();
        {
          const Accumulation local =
              adapter->accumulate();  // nothing leaves before it is looked at
          (weight * static_cast<double>(node.index + 1)).sum().backward();
        }
        const bool own = step == 2 && node.index == 0;
        if (own) weight.mutable_grad().fill_(std::numeric_limits<float>::infinity());
        const StepReport report =
            own ? adapter->skip_step(optimizer, {}) : adapter->step(optimizer, {});
        CHECK(report.outcome != Outcome::rejected);
        skipped += own ? 1 : 0;
        CHECK(report.skipped_steps == skipped);
      }
      node.wait_for_all();
      adapter->finish();
      const auto others = static_cast<double>(back_end.nodes);
      const double all = (others + 1) / 2;
      const double without_first = (others + 2) / 2;
      if (node.config.kvstore.type == KvstoreType::dist_sync) {
        const double expected = back_end.nodes == 1 ? -3 : -(3 * all + without_first);
        CHECK(weight[0].item<double>() == doctest::Approx(expected));
      } else {
        const double sum = others * (others + 1) / 2;
        CHECK(weight[0].item<double>() == doctest::Approx(-(4 * sum - 1)));
      }
    });
  });
}

TEST_CASE("a step whose gradients have left for the servers' optimizer cannot be skipped") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (!back_end.optimizer_elsewhere || back_end.servers == 0 || !is_alone(back_end)) return;
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      const auto optimizer = momentum_sgd(model);
      Circle circle(3, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      for (int step = 0; step < 3; ++step)
        adapter->step(*optimizer, backward(*optimizer, model, circle));
      const auto loss = backward(*optimizer, model, circle);
      CHECK_THROWS_WITH_AS(adapter->skip_step(*optimizer, loss),
                           doctest::Contains("have left in backward()"), std::logic_error);
      CHECK_NOTHROW(adapter->step(*optimizer, loss));
      adapter->finish();
    });
  });
}

}  // namespace dpwa
