#include <torch/cuda.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/common/tensor_checksum.h"
#include "test/adapters/contract.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/small_net.h"
#include "test/adapters/test_device.h"

// What a training loop may rely on, whatever back end the cluster file names: the model trains.
namespace dpwa {
namespace {

using namespace std::chrono_literals;
using test::BackEnd;
using test::backward;
using test::Circle;
using test::close;
using test::equal;
using test::finite;
using test::for_every_back_end;
using test::momentum_sgd;
using test::Net;
using test::Participant;
using test::run_nodes;
using test::tensors_of;

}  // namespace

TEST_CASE("the contract runs on a GPU where there is one, else on the CPU") {
  MESSAGE("on " << test::test_device().str());
  if (std::getenv("DPWA_TEST_DEVICE") == nullptr)
    CHECK(test::test_device().is_cuda() == torch::cuda::is_available());
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
    const auto trains_as_torch = [&](Participant& node, const auto& make_optimizer) {
      CAPTURE(back_end.name);
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
      if (!back_end.optimizer_elsewhere) {
        backward(*optimizer, model, circle);
        optimizer->step();  // so that it has state
        plain_step();
      }
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
    run_nodes(back_end, [&](Participant& node) { trains_as_torch(node, momentum_sgd); });
    run_nodes(back_end, [&](Participant& node) {
      // eps: the gradient of a bias before BatchNorm is the noise of rounding, which Adam would
      // make as large as any other.
      trains_as_torch(node, [](Net& model) {
        return std::make_unique<torch::optim::Adam>(model.parameters(),
                                                    torch::optim::AdamOptions(0.01).eps(1e-4));
      });
    });
  });
}

TEST_CASE("update_send, the optimizer's step and update_wait make a step") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    Net whole(3, device);
    run_nodes(back_end, [&](Participant& node) {
      Circle circle(5, device);
      const auto optimizer = momentum_sgd(whole);
      const auto adapter = make_adapter(node.config, whole);
      adapter->start();
      node.wait_for_all();
      for (int i = 0; i < 10; ++i) {
        const auto loss = backward(*optimizer, whole, circle);
        adapter->step(*optimizer, loss);
      }
    });
    run_nodes(back_end, [&](Participant& node) {
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
    std::vector<std::uint64_t> exchanges(back_end.nodes);
    run_nodes(back_end, [&](Participant& node) {
      Net model(10 + node.index, device);
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
        const bool averaged = report.outcome == Outcome::averaged;
        const bool updated = report.outcome == Outcome::updated;
        CHECK(report.participants == (averaged ? back_end.nodes : 1));
        CHECK(report.waited >= 0ns);
        if (report.clipped) {
          CHECK((blended && report.factor > 0 && report.factor < 0.5));
        } else {
          CHECK(report.factor == (blended ? 0.5 : 0.0));
        }
        CHECK((report.peer.empty() ||
               (report.peer.starts_with("w") && report.peer != node.config.self)));
        CHECK((!blended || (report.bytes > 0 && !report.peer.empty())));
        CHECK((!(averaged || updated) || (report.bytes > 0 && report.peer.empty())));
        exchanges[node.index] += averaged || updated || blended ? 1 : 0;
        CHECK(report.pulls_ok == before.pulls_ok + (blended ? 1 : 0));
        CHECK(report.pulls_failed >= before.pulls_failed);
        before = report;
      }
      CHECK(report.clock > 50);
      CHECK(report.clock == adapter->resume_state().clock);
      CHECK(last < 0.5);    // untrained: 0.7
      node.wait_for_all();  // no node is far from the others at the end, or leaves before them
      const FinishReport finished = adapter->finish();
      CHECK(finished.participants == back_end.nodes);
      CHECK(finished.averaged == (back_end.nodes > 1));
      CHECK(finite(model));
      CHECK(node.same_for_all(checksum_of(tensors_of(model))));
    });
    const auto all = std::accumulate(exchanges.begin(), exchanges.end(), std::uint64_t{0});
    CHECK((all > 0) == (back_end.nodes > 1));
  });
}

TEST_CASE("gradients of several batches are added up, and clipped before the step") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      Net plain(3, device);
      Circle circle(5, device);
      Circle plain_circle(5, device);
      const auto optimizer = momentum_sgd(model);
      const auto plain_optimizer = momentum_sgd(plain);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      for (int step = 0; step < 10; ++step) {
        torch::Tensor loss;
        adapter->set_optimizer(*optimizer);
        {
          const Accumulation local = adapter->accumulate();
          loss = backward(*optimizer, model, circle);
        }
        loss = test::add_backward(model, circle);
        adapter->average_gradients();
        const double norm = torch::nn::utils::clip_grad_norm_(model.parameters(), 0.1);
        adapter->step(*optimizer, loss);
        backward(*plain_optimizer, plain, plain_circle);
        test::add_backward(plain, plain_circle);
        CHECK(norm > 0.1);  // it clips
        torch::nn::utils::clip_grad_norm_(plain.parameters(), 0.1);
        plain_optimizer->step();
      }
      CHECK(finite(model));
      if (back_end.nodes == 1) CHECK(close(model, plain));
      adapter->finish();
    });
  });
}

TEST_CASE("what clips gradients without average_gradients() counts, or the step is refused") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      Net plain(3, device);
      Circle circle(5, device);
      Circle plain_circle(5, device);
      const auto optimizer = momentum_sgd(model);
      const auto plain_optimizer = momentum_sgd(plain);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      bool refused = false;
      for (int step = 0; step < 10 && !refused; ++step) {
        const auto loss = backward(*optimizer, model, circle);
        backward(*plain_optimizer, plain, plain_circle);
        CHECK(torch::nn::utils::clip_grad_norm_(model.parameters(), 0.1) > 0.1);
        torch::nn::utils::clip_grad_norm_(plain.parameters(), 0.1);
        try {
          adapter->step(*optimizer, loss);
          plain_optimizer->step();
        } catch (const std::logic_error& error) {
          refused = true;
          CHECK(std::string(error.what()) ==
                "parameter 'out.bias': its gradient was changed after it had left in "
                "backward(): call average_gradients() first");
        }
      }
      CHECK(close(model, plain));
      CHECK(refused == (back_end.servers > 0));
    });
  });
}

TEST_CASE("a pass under accumulate() after another pass counts, or is refused") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      torch::nn::Module model;
      auto weight =
          model.register_parameter("weight", torch::zeros({3}, torch::TensorOptions(device)));
      torch::optim::SGD optimizer(model.parameters(), 1.0);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      bool refused = false;
      double expected = 0;
      for (int step = 0; step < 3 && !refused; ++step) {
        optimizer.zero_grad();
        weight.sum().backward();
        try {
          const Accumulation local = adapter->accumulate();
          weight.sum().backward();
        } catch (const std::logic_error& late) {
          refused = true;
          CHECK(std::string(late.what()).find("second backward pass") != std::string::npos);
        }
        if (!refused) adapter->step(optimizer, {});
        expected -= 2;
        node.wait_for_all();
        if (!refused && back_end.nodes == 1)
          CHECK(weight[0].item<double>() == doctest::Approx(expected));
      }
      adapter->leave();
    });
  });
}

TEST_CASE("a parameter that only passes under accumulate() use counts in the step") {
  // `early` is used in the first of two passes, or in the only one, which is under accumulate().
  for (const bool has_last_pass : {true, false}) {
    for_every_back_end([&](const BackEnd& back_end, at::Device device) {
      run_nodes(back_end, [&](Participant& node) {
        CAPTURE(has_last_pass);
        torch::nn::Module model;
        const auto zero = torch::zeros({3}, torch::TensorOptions(device));
        auto early = model.register_parameter("early", zero.clone());
        auto late = model.register_parameter("late", zero.clone());
        torch::optim::SGD optimizer(model.parameters(), 1.0);
        const auto adapter = make_adapter(node.config, model);
        adapter->start();
        node.wait_for_all();
        optimizer.zero_grad();
        {
          const Accumulation local = adapter->accumulate();
          (early * static_cast<double>(node.index + 1)).sum().backward();
        }
        if (has_last_pass) late.sum().backward();
        const StepReport report = adapter->step(optimizer, {});
        node.wait_for_all();
        const bool averaged = report.outcome == Outcome::averaged;
        const double mean = static_cast<double>(back_end.nodes + 1) / 2;
        const double own = static_cast<double>(node.index + 1);
        if (averaged || back_end.nodes == 1) {
          CHECK(early[0].item<double>() == doctest::Approx(-(averaged ? mean : own)));
          CHECK(late[0].item<double>() == doctest::Approx(has_last_pass ? -1 : 0));
        }
        adapter->finish();
      });
    });
  }
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

}  // namespace dpwa
