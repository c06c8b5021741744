#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "test/adapters/contract.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/small_net.h"

// The code of docs/ADAPTER.md, under every back end. docs_test.py compares the lines.
namespace dpwa {
namespace {

using test::BackEnd;
using test::backward;
using test::Circle;
using test::for_every_back_end;
using test::momentum_sgd;
using test::Net;
using test::Participant;
using test::run_nodes;

void save_to(std::ostream& file, const torch::nn::Module& model, torch::optim::Optimizer& optimizer,
             dpwa::Adapter& adapter) {
  adapter.take_optimizer_state(optimizer);  // kvstore.update: server has it elsewhere
  const dpwa::ResumeState state = adapter.resume_state();
  torch::serialize::OutputArchive all, of_model, of_optimizer;
  model.save(of_model);
  optimizer.save(of_optimizer);
  all.write("model", of_model);
  all.write("optimizer", of_optimizer);
  all.write("clock", torch::tensor(state.clock, torch::kDouble));
  for (const auto& [name, number] : state.own)
    all.write("own " + name, torch::tensor(static_cast<std::int64_t>(number)));
  all.save_to(file);
}

dpwa::ResumeState load_from(std::istream& file, torch::nn::Module& model,
                            torch::optim::Optimizer& optimizer) {
  torch::serialize::InputArchive all, of_model, of_optimizer;
  all.load_from(file);
  all.read("model", of_model);
  all.read("optimizer", of_optimizer);
  model.load(of_model);  // before make_adapter(): it moves the tensors
  optimizer.load(of_optimizer);
  dpwa::ResumeState state;
  for (const std::string& key : all.keys()) {
    torch::Tensor number;
    if (!all.try_read(key, number)) continue;  // model, optimizer
    if (key == "clock") state.clock = number.item<double>();
    if (key.starts_with("own "))
      state.own[key.substr(4)] = static_cast<std::uint64_t>(number.item<std::int64_t>());
  }
  return state;
}

// Gradients of the loss times `scale` become those of the loss. False: they have overflowed.
bool unscale(const std::vector<torch::Tensor>& parameters, double scale) {
  bool finite = true;
  for (const auto& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    parameter.grad().div_(scale);
    finite = finite && parameter.grad().isfinite().all().item<bool>();
  }
  return finite;
}

}  // namespace

// Not with servers: they leave out what is not finite, and the mean of the others comes back.
TEST_CASE("a scaler as the page on the adapter has it skips steps whose gradients overflow") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.servers > 0) return;
    run_nodes(back_end, [&](Participant& node) {
      const bool all_skip = node.config.backend == Backend::collective || node.index == 0;
      Net model(3, device);
      const auto sgd = momentum_sgd(model);
      auto& optimizer = *sgd;
      Circle circle(node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      double scale = 1024;
      for (int step = 0; step < 10; ++step) {
        optimizer.zero_grad();
        auto loss = circle.loss(model);
        if (step == 4 && node.index == 0) loss = loss * std::numeric_limits<float>::infinity();
        (loss * scale).backward();
        adapter->average_gradients();
        const bool usable = unscale(model.parameters(), scale);
        StepReport report =
            usable ? adapter->step(optimizer, loss) : adapter->skip_step(optimizer, loss);
        scale = usable ? scale : scale / 2;
        CHECK(usable == !(step == 4 && all_skip));
        CHECK(report.skipped_steps == (step >= 4 && all_skip ? 1 : 0));
      }
      CHECK(scale == (all_skip ? 512 : 1024));
      CHECK(test::finite(model));
      node.wait_for_all();
      adapter->finish();
    });
  });
}

TEST_CASE("a checkpoint as the page on the adapter has it goes on where it was written") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    if (back_end.nodes != 1) return;
    constexpr int steps = 4;
    Circle plain_circle(5, device);
    Net plain(3, device);
    const auto plain_optimizer = momentum_sgd(plain);
    Circle circle(5, device);
    std::stringstream file;
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      const auto optimizer = momentum_sgd(model);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      for (int step = 0; step < steps; ++step)
        adapter->step(*optimizer, backward(*optimizer, model, circle));
      save_to(file, model, *optimizer, *adapter);
      adapter->leave();
    });
    run_nodes(back_end, [&](Participant& node) {
      Net net(7, device);
      const auto sgd = momentum_sgd(net);
      auto& model = net;
      auto& optimizer = *sgd;
      const auto& config = node.config;
      const dpwa::ResumeState state = load_from(file, model, optimizer);
      auto adapter = dpwa::make_adapter(config, model);
      adapter->restore(state);
      adapter->start();
      for (int step = 1; step <= steps; ++step)
        CHECK(adapter->step(optimizer, backward(optimizer, model, circle)).clock == steps + step);
      adapter->finish();
      for (int step = 0; step < 2 * steps; ++step) {
        backward(*plain_optimizer, plain, plain_circle);
        plain_optimizer->step();
      }
      CHECK(test::close(model, plain));
    });
  });
}

}  // namespace dpwa
