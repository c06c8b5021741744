#include <ATen/Parallel.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <chrono>
#include <stdexcept>

#include "adapters/gossip/gossip_adapter.h"
#include "dpwa/net/free_ports.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/test_device.h"
#include "test/support/allocations.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::test_device;
using torch::nn::Module;

using Tune = std::function<void(Config&)>;

void wait_for_pulls(Config& config) {
  config.gossip.step_budget = config.gossip.timeout;
}

// Models that gossip over loopback, driven in lockstep by one thread.
class Lockstep {
 public:
  explicit Lockstep(std::vector<std::shared_ptr<Module>> models, const Tune& tune = {})
      : models_(std::move(models)) {
    const auto ports = net::free_ports(models_.size());
    for (std::size_t i = 0; i < models_.size(); ++i) {
      Config config = test::loopback_config(ports, i);
      wait_for_pulls(config);
      if (tune) tune(config);
      adapters_.push_back(std::make_unique<GossipAdapter>(std::move(config), *models_[i]));
    }
  }

  void start() {
    at_once([](GossipAdapter& adapter) { adapter.start(); });
  }

  void finish() {
    at_once([](GossipAdapter& adapter) { CHECK(adapter.finish().averaged); });
  }

  // A synchronous step of all: publish and begin to pull, `between`, blend.
  void round(const std::function<void(std::size_t)>& between = {}, bool pull = true) {
    for (const auto& adapter : adapters_) adapter->gossip().publish([] { return 1.0; });
    for (const auto& adapter : adapters_) {
      if (pull) adapter->gossip().begin_pull();
    }
    for (std::size_t i = 0; i < adapters_.size(); ++i) {
      if (between) between(i);
      const StepReport report = adapters_[i]->update_wait(torch::Tensor());
      REQUIRE(report.outcome == (pull ? Outcome::mixed : Outcome::skipped));
    }
  }

 private:
  void at_once(const std::function<void(GossipAdapter&)>& body) {
    test::at_once(adapters_.size(), [&](std::size_t i) { body(*adapters_[i]); });
  }

  std::vector<std::shared_ptr<Module>> models_;
  std::vector<std::unique_ptr<GossipAdapter>> adapters_;
};

std::shared_ptr<Module> vector_module(const at::Tensor& values) {
  auto module = std::make_shared<Module>("vector");
  module->register_parameter("w", values.to(test_device()));
  return module;
}

// A layer of each kind: trainable, normalised, frozen.
struct Net : Module {
  explicit Net(int outputs = 2) : out(register_module("out", torch::nn::Linear(8, outputs))) {
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
    to(test_device());
  }
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(4, 8));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(8));
  torch::nn::Linear frozen = register_module("frozen", torch::nn::Linear(8, 8));
  torch::nn::Linear out;
};

// Other values everywhere, running statistics and counters included.
void scramble(Module& module, std::uint64_t seed) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(seed);
  for (auto& parameter : module.parameters()) parameter.normal_();
  for (auto& buffer : module.buffers()) {
    if (buffer.is_floating_point()) {
      buffer.uniform_(1, 2);
    } else {
      buffer.fill_(static_cast<std::int64_t>(seed));
    }
  }
}

torch::OrderedDict<std::string, torch::Tensor> copies_of(const Module& module) {
  torch::OrderedDict<std::string, torch::Tensor> copies;
  for (const auto& item : module.named_parameters())
    copies.insert(item.key(), item.value().detach().clone());
  for (const auto& item : module.named_buffers()) copies.insert(item.key(), item.value().clone());
  return copies;
}

constexpr double lr = 1.0 / 1024;

// Speed of the mean of two nodes whose gradients are 1 and 3, as a fraction of what SGD without
// communication does: the effective learning rate. Every `pull_every`-th step pulls.
double effective_learning_rate(BlendMode blend, double factor, int pull_every, double momentum) {
  constexpr int steps = 400;
  const auto options = torch::optim::SGDOptions(lr).momentum(momentum);
  std::vector<std::shared_ptr<Module>> models;
  std::vector<std::unique_ptr<torch::optim::SGD>> optimizers;
  for (int i = 0; i < 3; ++i) {  // the third is alone
    models.push_back(vector_module(torch::zeros({8})));
    optimizers.push_back(std::make_unique<torch::optim::SGD>(models.back()->parameters(), options));
  }
  Lockstep nodes({models[0], models[1]}, [&](Config& config) {
    config.gossip.blend = blend;
    config.interpolation.parameters["value"] = factor;
  });
  nodes.start();
  const auto step = [&](std::size_t i) {
    const double gradient = i == 0 ? 1 : i == 1 ? 3 : 2;
    optimizers[i]->zero_grad();
    (models[i]->parameters()[0].sum() * gradient).backward();
    optimizers[i]->step();
  };
  for (int round = 0; round < steps; ++round) {
    nodes.round(step, round % pull_every == 0);
    step(2);
  }
  const auto travelled = [&](std::size_t i) {
    return -models[i]->parameters()[0].detach().mean().item<double>();
  };
  return (travelled(0) + travelled(1)) / 2 / travelled(2);
}

}  // namespace

TEST_CASE("delta and lerp blends of every dtype equal what torch computes") {
  for (const auto dtype : {torch::kFloat, torch::kBFloat16, torch::kHalf, torch::kDouble}) {
    for (const auto blend : {BlendMode::delta, BlendMode::lerp}) {
      CAPTURE(c10::toString(dtype));
      CAPTURE((blend == BlendMode::delta));
      torch::manual_seed(3);
      const auto first = vector_module(torch::zeros({1000}).to(dtype));
      const auto second = vector_module(torch::zeros({1000}).to(dtype));
      Lockstep nodes({first, second}, [&](Config& config) { config.gossip.blend = blend; });
      nodes.start();
      auto x = first->parameters()[0].detach();
      auto y = second->parameters()[0].detach();
      x.copy_(torch::randn({1000}));
      y.copy_(torch::randn({1000}));
      const auto update = torch::randn({1000}).to(dtype).to(test_device());
      const auto wide = dtype == torch::kDouble ? torch::kDouble : torch::kFloat;
      const at::Tensor expected = blend == BlendMode::delta
                                      ? ((x + update).to(wide) + (y - x).to(wide) * 0.5).to(dtype)
                                      : ((x + update).to(wide) * 0.5 + y.to(wide) * 0.5).to(dtype);
      nodes.round([&](std::size_t i) {
        if (i == 0) x.add_(update);
      });
      // A device rounds a lerp in another order.
      const bool exact = blend == BlendMode::delta || test_device().is_cpu();
      CHECK((exact ? torch::equal(x, expected) : torch::allclose(x, expected, 1e-2, 1e-2)));
    }
  }
}

TEST_CASE("the delta blend keeps the learning rate of a torch optimizer, with momentum too") {
  CHECK(effective_learning_rate(BlendMode::delta, 0.5, 1, 0) == doctest::Approx(1).epsilon(0.01));
  CHECK(effective_learning_rate(BlendMode::delta, 0.9, 2, 0) == doctest::Approx(1).epsilon(0.01));
  CHECK(effective_learning_rate(BlendMode::delta, 0.5, 1, 0.9) == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("the lerp blend shrinks the learning rate of a torch optimizer to 1 - p f") {
  CHECK(effective_learning_rate(BlendMode::lerp, 0.5, 1, 0) == doctest::Approx(0.5).epsilon(0.01));
  CHECK(effective_learning_rate(BlendMode::lerp, 0.5, 2, 0) == doctest::Approx(0.75).epsilon(0.01));
}

TEST_CASE("a blend averages weights and running statistics, and keeps frozen ones and counters") {
  const auto first = std::make_shared<Net>();
  const auto second = std::make_shared<Net>();
  Lockstep nodes({first, second});
  nodes.start();
  scramble(*first, 5);
  scramble(*second, 7);
  const auto a = copies_of(*first);
  const auto b = copies_of(*second);
  nodes.round();
  for (const auto& item : copies_of(*first)) {
    CAPTURE(item.key());
    const std::string& name = item.key();
    if (name.starts_with("frozen.")) {
      CHECK(torch::equal(item.value(), a[name]));
    } else if (name == "norm.num_batches_tracked") {
      CHECK(item.value().item<std::int64_t>() == 5);  // its own steps, not those of others
    } else {
      CHECK(torch::allclose(item.value(), (a[name] + b[name]) / 2));
      CHECK_FALSE(torch::equal(item.value(), a[name]));
    }
  }
  CHECK(torch::equal(second->frozen->weight, b["frozen.weight"]));
}

TEST_CASE(
    "a late joiner begins with the weights, buffers, frozen parameters and clock of the others") {
  const auto ports = net::free_ports(2);
  Config early = test::loopback_config(ports, 0);
  early.gossip.start_wait = 50ms;
  const auto veteran = std::make_shared<Net>();
  GossipAdapter running(early, *veteran);
  running.start();
  scramble(*veteran, 11);
  for (int i = 0; i < 5; ++i) running.gossip().publish([] { return 1.0; });

  const auto newcomer = std::make_shared<Net>();
  GossipAdapter joiner(test::loopback_config(ports, 1), *newcomer);
  joiner.start();
  const auto expected = copies_of(*veteran);
  for (const auto& item : copies_of(*newcomer)) {
    CAPTURE(item.key());
    CHECK(torch::equal(item.value(), expected[item.key()]));
  }
  CHECK(joiner.resume_state().clock == 5);
  CHECK(joiner.resume_state().own.at("lineage") == running.resume_state().own.at("lineage"));
}

TEST_CASE(
    "the final average is the mean of all models, running statistics included, on each node") {
  std::vector<std::shared_ptr<Module>> models;
  for (int i = 0; i < 3; ++i) models.push_back(std::make_shared<Net>());
  Lockstep nodes(models);
  nodes.start();
  for (std::size_t i = 0; i < 3; ++i) scramble(*models[i], 20 + i);
  std::vector<torch::OrderedDict<std::string, torch::Tensor>> before;
  for (const auto& model : models) before.push_back(copies_of(*model));
  nodes.finish();
  const auto average = copies_of(*models[0]);
  for (const auto& item : average) {
    const std::string& name = item.key();
    CAPTURE(name);
    if (name.starts_with("frozen.")) {  // nothing to average: that of the first node
      CHECK(torch::equal(item.value(), before[0][name]));
    } else if (item.value().is_floating_point()) {
      const auto mean = (before[0][name] + before[1][name] + before[2][name]) / 3;
      CHECK(torch::allclose(item.value(), mean, 1e-4, 1e-6));
    } else {
      CHECK(item.value().item<std::int64_t>() == 22);
    }
    for (std::size_t i = 1; i < 3; ++i)
      CHECK(torch::equal(copies_of(*models[i])[name], item.value()));
  }
}

TEST_CASE("different architectures refuse each other and name the first tensor that differs") {
  const auto ports = net::free_ports(2);
  Config config = test::loopback_config(ports, 0);
  config.gossip.start_wait = 50ms;
  const auto two = std::make_shared<Net>(2);
  GossipAdapter node(config, *two);
  node.start();
  const auto three = std::make_shared<Net>(3);
  GossipAdapter other(test::loopback_config(ports, 1), *three);
  CHECK_THROWS_WITH_AS(other.start(), doctest::Contains("'out.weight'"), std::runtime_error);
}

TEST_CASE("a model of ten thousand tensors blends as one") {
  const auto many = [](float value) {
    auto module = std::make_shared<Module>("many");
    for (int i = 0; i < 10000; ++i)
      module->register_parameter("p" + std::to_string(i), torch::full({3}, value));
    module->to(test_device());
    return module;
  };
  const auto first = many(1);
  const auto second = many(1);
  Lockstep nodes({first, second});
  nodes.start();
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : second->parameters()) parameter.fill_(3);
  }
  nodes.round();
  for (const auto& parameter : first->parameters()) REQUIRE(parameter.eq(2).all().item<bool>());
}

TEST_CASE("a checkpoint keeps the descent of a gossip node, and one of another back end has none") {
  const auto ports = net::free_ports(1);
  Module module("one");
  module.register_parameter("p", torch::ones({3}));
  GossipAdapter adapter(test::loopback_config(ports, 0), module);
  adapter.restore({17, {{"lineage", 99}, {"incarnation", 5}}});
  const ResumeState state = adapter.resume_state();
  CHECK(state.clock == 17);
  CHECK(state.own.at("lineage") == 99);
  CHECK(state.own.at("incarnation") >= 5);
  adapter.restore({3, {}});
  CHECK(adapter.resume_state().own.at("lineage") == 0);
  adapter.start();
  CHECK(adapter.resume_state().clock == 3);
  CHECK(adapter.resume_state().own.at("lineage") != 0);
}

// In host memory.
TEST_CASE(
    "the two halves of a step allocate once, for the publish, however many tensors there are") {
  const auto ports = net::free_ports(2);
  std::vector<std::shared_ptr<Module>> models;
  std::vector<std::unique_ptr<GossipAdapter>> adapters;
  for (std::size_t i = 0; i < 2; ++i) {
    auto module = std::make_shared<Module>("many");
    for (int p = 0; p < 500; ++p)
      module->register_parameter("p" + std::to_string(p), torch::ones({3}));
    Config config = test::loopback_config(ports, i);
    wait_for_pulls(config);
    config.gossip.ledger = false;  // the second node pulls nothing
    models.push_back(std::move(module));
    adapters.push_back(std::make_unique<GossipAdapter>(std::move(config), *models.back()));
  }
  test::at_once(2, [&](std::size_t i) { adapters[i]->start(); });
  const auto loss = torch::ones({}).requires_grad_();
  constexpr int warm_up = 10, steps = 50;
  std::uint64_t allocated = 0;
  for (int step = -warm_up; step < steps; ++step) {
    adapters[1]->gossip().publish([] { return 1.0; });
    const auto before = test::allocations();
    adapters[0]->update_send(loss);
    const StepReport report = adapters[0]->update_wait(loss);
    if (step >= 0) allocated += test::allocations() - before;
    REQUIRE(report.outcome == Outcome::mixed);
  }
  CHECK(allocated == steps);
}

TEST_CASE("a program that calls its optimizer in place of step() is told that it trains alone") {
  const std::string words =
      "backward passes without a step(): unless they add up, this node trains alone";
  const auto model = std::make_shared<Net>();
  GossipAdapter adapter(test::loopback_config(net::free_ports(1), 0), *model);
  const auto passes = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      model->out(model->hidden(torch::ones({2, 4}).to(test_device()))).sum().backward();
  };
  const test::LogFile log;
  passes(MissingSteps::most_passes);
  adapter.start();
  passes(MissingSteps::most_passes - 1);  // added up
  adapter.update_send(torch::ones({}));
  adapter.update_wait({});
  passes(MissingSteps::most_passes - 1);
  CHECK_FALSE(log.has(words));
  passes(MissingSteps::most_passes);
  CHECK(log.count(words) == 1);
  adapter.leave();
  passes(2 * MissingSteps::most_passes);
  CHECK(log.count(words) == 1);
}

TEST_CASE("a program with more threads than its node's part of the host is told so") {
  Config config = test::loopback_config(net::free_ports(1), 0);
  config.nodes[0].cores = {0};
  for (const int threads : {1, 2}) {
    const test::LogFile log;
    at::set_num_threads(threads);
    const auto model = vector_module(torch::ones({3}).requires_grad_());
    make_adapter(config, *model);
    CHECK(log.has("set_num_threads") == (threads == 2));
  }
  at::set_num_threads(1);
}

}  // namespace dpwa
