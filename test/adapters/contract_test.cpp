#include "test/adapters/contract.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "adapters/adapter.h"
#include "test/adapters/doctest_with_torch.h"

// What a training loop may rely on, whatever back end the cluster file names.
namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::BackEnd;
using test::for_every_back_end;
using test::Participant;
using test::run_nodes;

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

torch::Tensor backward(torch::optim::Optimizer& optimizer, Net& model, Circle& circle) {
  optimizer.zero_grad();
  auto loss = circle.loss(model);
  loss.backward();
  return loss;
}

std::unique_ptr<torch::optim::SGD> momentum_sgd(Net& model) {
  return std::make_unique<torch::optim::SGD>(model.parameters(),
                                             torch::optim::SGDOptions(0.1).momentum(0.9));
}

std::vector<torch::Tensor> tensors_of(const Net& model) {
  auto tensors = model.parameters();
  for (const auto& buffer : model.buffers()) tensors.push_back(buffer);
  return tensors;
}

bool equal(const Net& a, const Net& b) {
  return std::ranges::equal(tensors_of(a), tensors_of(b), [](const auto& x, const auto& y) {
    return torch::equal(x.cpu(), y.cpu());
  });
}

// Equal but for what another memory alignment does to a matrix product.
bool close(const Net& a, const Net& b) {
  return std::ranges::equal(tensors_of(a), tensors_of(b), [](const auto& x, const auto& y) {
    return torch::allclose(x.cpu(), y.cpu(), 1e-4, 1e-5);
  });
}

bool finite(const Net& model) {
  return std::ranges::all_of(
      model.parameters(), [](const auto& x) { return x.isfinite().all().template item<bool>(); });
}

// True when `body` throws std::logic_error, false when it does nothing of the kind.
bool is_logic_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the contract runs on the CPU, and on a GPU where there is one") {
  if (test::devices().size() == 1) MESSAGE("skipped on a GPU: there is none");
  CHECK(test::devices().front().is_cpu());
}

TEST_CASE("making an adapter keeps every bit and tensor and moves the model into one memory") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      const Net same(3, device);
      std::vector<const void*> identities;
      for (const auto& tensor : tensors_of(model))
        identities.push_back(tensor.unsafeGetTensorImpl());
      const auto adapter = make_adapter(node.config, model);
      CHECK(equal(model, same));
      const std::byte* low = nullptr;
      const std::byte* high = nullptr;
      std::size_t bytes = 0;
      std::size_t index = 0;
      for (const auto& tensor : tensors_of(model)) {
        CHECK(tensor.unsafeGetTensorImpl() == identities[index++]);
        const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
        low = low == nullptr ? data : std::min(low, data);
        high = std::max(high, data + tensor.nbytes());
        bytes += tensor.nbytes();
      }
      CHECK(static_cast<std::size_t>(high - low) <= bytes + 2 * 64);  // two dtypes
    });
  });
}

TEST_CASE("one node trains as torch does, with an optimizer that was made and used before") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    run_nodes(back_end, [&](Participant& node) {
      const auto trains_as_torch = [&](const auto& make_optimizer) {
        Net model(3, device);
        Net plain(3, device);
        Circle circle(5, device);
        Circle plain_circle(5, device);
        const auto optimizer = make_optimizer(model);
        const auto plain_optimizer = make_optimizer(plain);
        const auto plain_step = [&] {
          backward(*plain_optimizer, plain, plain_circle);
          plain_optimizer->step();
        };
        backward(*optimizer, model, circle);
        optimizer->step();  // so that it has state
        plain_step();
        const auto adapter = make_adapter(node.config, model);
        adapter->start();
        node.wait_for_all();
        for (int i = 1; i <= 20; ++i) {
          const auto loss = backward(*optimizer, model, circle);
          const StepReport report = adapter->step(*optimizer, loss);
          CHECK(report.clock == i);
          CHECK((report.outcome == Outcome::skipped || report.outcome == Outcome::pending));
          plain_step();
        }
        CHECK(close(model, plain));
        const FinishReport finished = adapter->finish();
        CHECK(finished.participants == 1);
        CHECK_FALSE(finished.averaged);
        CHECK(close(model, plain));
      };
      trains_as_torch(momentum_sgd);
      trains_as_torch([](Net& model) {
        return std::make_unique<torch::optim::Adam>(model.parameters(),
                                                    torch::optim::AdamOptions(0.01));
      });
    });
  });
}

TEST_CASE("update_send, the optimizer's step and update_wait make a step") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    run_nodes(back_end, [&](Participant& node) {
      Net whole(3, device);
      {
        Circle circle(5, device);
        const auto optimizer = momentum_sgd(whole);
        const auto adapter = make_adapter(node.config, whole);
        adapter->start();
        node.wait_for_all();
        for (int i = 0; i < 10; ++i) {
          const auto loss = backward(*optimizer, whole, circle);
          adapter->step(*optimizer, loss);
        }
      }
      Net halves(3, device);
      Circle circle(5, device);
      const auto optimizer = momentum_sgd(halves);
      const auto adapter = make_adapter(node.config, halves);
      adapter->start();
      node.wait_for_all();
      for (int i = 1; i <= 10; ++i) {
        const auto loss = backward(*optimizer, halves, circle);
        adapter->update_send(loss);
        optimizer->step();
        CHECK(adapter->update_wait(loss).clock == i);
      }
      CHECK(close(whole, halves));
    });
  });
}

TEST_CASE("the training loop lowers the loss on every node, with sane reports and one end") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    std::vector<std::unique_ptr<Net>> models(back_end.nodes);
    std::vector<std::uint64_t> mixed(back_end.nodes);
    run_nodes(back_end, [&](Participant& node) {
      models[node.index] = std::make_unique<Net>(10 + node.index, device);
      Net& model = *models[node.index];
      const auto optimizer = momentum_sgd(model);
      Circle circle(node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      double last = 0;
      StepReport report;
      StepReport before;
      for (int step = 0; step < 300; ++step) {
        const auto loss = backward(*optimizer, model, circle);
        report = adapter->step(*optimizer, loss);
        if (step >= 200) last += loss.item<double>() / 100;
        const bool blended = report.outcome == Outcome::mixed;
        CHECK(report.waited >= 0ns);
        CHECK(report.waited <=
              node.config.gossip.step_budget + 100ms);  // and what a busy machine adds
        CHECK(report.factor == (blended ? 0.5 : 0.0));
        CHECK((report.peer.empty() ||
               (report.peer.starts_with("w") && report.peer != node.config.self)));
        CHECK((!blended || (report.bytes > 0 && !report.peer.empty())));
        CHECK(report.pulls_ok == before.pulls_ok + (blended ? 1 : 0));
        CHECK(report.pulls_failed >= before.pulls_failed);
        before = report;
      }
      CHECK(report.clock > 50);
      CHECK(report.clock == adapter->resume_state().clock);
      CHECK(last < 0.5);  // untrained: 0.7
      mixed[node.index] = report.pulls_ok;
      const FinishReport finished = adapter->finish();
      CHECK(finished.participants == back_end.nodes);
      CHECK(finished.averaged == (back_end.nodes > 1));
      CHECK(finite(model));
    });
    for (const auto& model : models) CHECK(equal(*model, *models.front()));
    const std::uint64_t blends = std::accumulate(mixed.begin(), mixed.end(), std::uint64_t{0});
    CHECK((blends > 0) == (back_end.nodes > 1));
  });
}

TEST_CASE("nodes begin with the first one's weights") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    const Net first(10, device);
    run_nodes(back_end, [&](Participant& node) {
      Net model(10 + node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      CHECK(equal(model, first));
      adapter->finish();
    });
  });
}

TEST_CASE("finish is idempotent, and a step after it trains on alone") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(node.index, device);
      const auto optimizer = momentum_sgd(model);
      Circle circle(node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      adapter->step(*optimizer, backward(*optimizer, model, circle));
      const FinishReport finished = adapter->finish();
      const auto weights = model.out->weight.detach().clone();
      const FinishReport again = adapter->finish();
      CHECK(again.averaged == finished.averaged);
      CHECK(again.participants == finished.participants);
      CHECK(torch::equal(model.out->weight, weights));
      const auto report = adapter->step(*optimizer, backward(*optimizer, model, circle));
      CHECK(report.outcome == Outcome::skipped);
      CHECK_FALSE(torch::equal(model.out->weight, weights));
      adapter->leave();
    });
  });
}

TEST_CASE("a node may leave at any moment, and its trainer goes on") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    for (int moment = 0; moment < 4; ++moment) {
      CAPTURE(moment);
      run_nodes(back_end, [&](Participant& node) {
        Net model(node.index, device);
        const auto optimizer = momentum_sgd(model);
        Circle circle(node.index, device);
        const auto adapter = make_adapter(node.config, model);
        if (moment == 0) return adapter->leave();
        adapter->start();
        node.wait_for_all();
        if (moment == 1) adapter->leave();
        auto loss = backward(*optimizer, model, circle);
        adapter->update_send(loss);
        if (moment == 2) adapter->leave();
        optimizer->step();
        adapter->update_wait(loss);
        adapter->leave();
        adapter->leave();
        const auto weights = model.out->weight.detach().clone();
        adapter->step(*optimizer, backward(*optimizer, model, circle));
        CHECK_FALSE(torch::equal(model.out->weight, weights));
        CHECK_FALSE(adapter->finish().averaged);
      });
    }
  });
}

TEST_CASE("an adapter may be destroyed in any state, and the model outlives it") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    for (int moment = 0; moment < 4; ++moment) {
      CAPTURE(moment);
      run_nodes(back_end, [&](Participant& node) {
        Net model(node.index, device);
        const auto optimizer = momentum_sgd(model);
        Circle circle(node.index, device);
        auto adapter = make_adapter(node.config, model);
        if (moment >= 1) adapter->start();
        node.wait_for_all();
        if (moment >= 2) adapter->update_send(backward(*optimizer, model, circle));
        if (moment >= 3) adapter->update_wait(torch::Tensor());
        adapter.reset();
        const auto loss = backward(*optimizer, model, circle);
        optimizer->step();
        CHECK(std::isfinite(loss.item<double>()));
        CHECK(finite(model));
      });
    }
  });
}

TEST_CASE("a checkpoint's state comes back") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->restore({17, 99, 5});
      CHECK(adapter->resume_state().clock == 17);
      CHECK(adapter->resume_state().lineage == 99);
      CHECK(adapter->resume_state().incarnation >= 5);
      adapter->start();
      node.wait_for_all();
      CHECK(equal(model, Net(3, device)));
      CHECK(adapter->resume_state().lineage == 99);
      const auto optimizer = momentum_sgd(model);
      Circle circle(1, device);
      if (back_end.nodes == 1) {
        CHECK(adapter->step(*optimizer, backward(*optimizer, model, circle)).clock == 18);
        CHECK(adapter->resume_state().clock == 18);
      }
      adapter->finish();
    });
  });
}

TEST_CASE("a loss that is NaN, infinite, undefined or of another dtype does no harm") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    BackEnd weighted = back_end;
    weighted.tune = [&](Config& config) {
      back_end.tune(config);
      config.interpolation.method = "loss";
    };
    run_nodes(weighted, [&](Participant& node) {
      Net model(node.index, device);
      const auto optimizer = momentum_sgd(model);
      Circle circle(node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      const auto options = torch::TensorOptions().device(device);
      const std::vector<torch::Tensor> losses = {
          torch::tensor(std::numeric_limits<double>::quiet_NaN(), options),
          torch::tensor(std::numeric_limits<double>::infinity(), options),
          torch::tensor(-1.0, options),
          torch::Tensor(),
          torch::ones({1, 1}, options.dtype(torch::kBFloat16)),
          torch::ones({}, options.dtype(torch::kDouble)).requires_grad_(),
          torch::ones({3}, options)};
      for (int round = 0; round < 5; ++round) {
        for (const auto& loss : losses) {
          backward(*optimizer, model, circle);
          const StepReport report = adapter->step(*optimizer, loss);
          CHECK(report.factor >= 0);
          CHECK(report.factor <= 1);
        }
      }
      CHECK(finite(model));
      adapter->finish();
    });
  });
}

TEST_CASE("starting twice, or stepping before the start, is a clear error or does no harm") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(node.index, device);
      const auto optimizer = momentum_sgd(model);
      Circle circle(node.index, device);
      const auto adapter = make_adapter(node.config, model);
      const auto step = [&] { adapter->step(*optimizer, backward(*optimizer, model, circle)); };
      const bool refuses = is_logic_error(step);
      CHECK(is_logic_error([&] { adapter->update_wait(torch::Tensor()); }) == refuses);
      adapter->start();
      node.wait_for_all();
      CHECK(is_logic_error([&] { adapter->start(); }) == refuses);
      step();
      CHECK(adapter->finish().participants == back_end.nodes);
    });
  });
}

TEST_CASE("a model that is moved or loaded after make_adapter is refused at the next step") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      const auto optimizer = momentum_sgd(model);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      model.to(torch::kDouble);
      CHECK_THROWS_AS(adapter->step(*optimizer, torch::Tensor()), std::logic_error);
    });
  });
}

TEST_CASE("a back end that this build lacks is refused by name") {
  Net model(3);
  Config config;
  config.backend = Backend::kvstore;
  CHECK_THROWS_WITH_AS(make_adapter(config, model), doctest::Contains("'kvstore'"), ConfigError);
}

}  // namespace dpwa
