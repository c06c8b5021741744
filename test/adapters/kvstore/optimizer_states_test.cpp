#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "test/adapters/kvstore/store_nodes.h"

// The optimizer's state where others need it: workers that come later, and checkpoints.
namespace dpwa {

using namespace test;

namespace {

// Ten steps of the first worker alone, then the second comes, and 30 steps of both.
void check_join(const MakeOptimizer& kind, const std::function<void(Config&)>& tune) {
  const Data data = data_of(160);
  std::atomic<double> end = 0;
  const auto models = models_of<Net>(2, 5);
  const auto seed = flat(*models[0]);
  run_nodes(store(2, 2,
                  [&](Config& config) {
                    config.kvstore.min_workers = 1;
                    tune(config);
                  }),
            [&](Participant& node) {
              Net& net = *models[node.index];
              const auto optimizer = make(kind, net);
              const auto adapter = make_adapter(node.config, net);
              const auto step = [&] {
                optimizer->zero_grad();
                const auto from = static_cast<std::int64_t>(node.index) * worker_rows;
                const Tensor loss = loss_of(net, data, from, worker_rows);
                loss.backward();
                return adapter->step(*optimizer, loss);
              };
              if (node.index == 0) {
                adapter->start();
                for (int i = 0; i < 10; ++i) CHECK(step().clock == i + 1);
              }
              node.wait_for_all();
              if (node.index == 1) {
                adapter->start();
                CHECK(adapter->resume_state().clock >= 10);
                CHECK(relative_distance(flat(net), seed) > 1e-3);
                end = adapter->resume_state().clock + 30;
              }
              while (end == 0 || adapter->resume_state().clock < end - 1) step();
              CHECK(step().participants == 2);
              node.wait_for_all();
              CHECK(adapter->finish().participants == 2);
            });
  CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
}

}  // namespace

TEST_CASE("update: worker: one that joins later gets weights and optimizer's state of the others") {
  for (const auto& [name, kind] : optimizers()) {
    INFO(name);
    check_join(kind, [](Config& config) { config.kvstore.update = KvstoreUpdate::worker; });
  }
}

TEST_CASE("update: worker: workers with other checkpoints begin with that of the first one") {
  double second = 4;  // its step; that of the first: 7
  bool averages = false;
  bool tells = true;  // the optimizer, before the gradients are averaged
  SUBCASE("of another step") {}
  SUBCASE("of the same step, of another run") {
    second = 7;
  }
  SUBCASE("average_gradients() after set_optimizer()") {
    averages = true;
  }
  SUBCASE("average_gradients() alone, which is one line") {
    averages = true;
    tells = false;
  }
  const Data data = data_of(160);
  for (const auto& [name, kind] : optimizers()) {
    INFO(name);
    const auto models = models_of<Net>(2, 5);
    std::string problem;
    const auto with_worker = [](Config& config) { config.kvstore.update = KvstoreUpdate::worker; };
    run_nodes(store(2, 1, with_worker), [&](Participant& node) {
      Net& net = *models[node.index];
      const auto optimizer = make(kind, net);
      const auto backward = [&] {
        optimizer->zero_grad();
        const auto from = static_cast<std::int64_t>(node.index) * worker_rows;
        const Tensor loss = loss_of(net, data, from, worker_rows);
        loss.backward();
        return loss;
      };
      const double clock = node.index == 0 ? 7 : second;
      for (int i = 0; i < clock; ++i) {
        backward();
        optimizer->step();
      }
      const auto adapter = make_adapter(node.config, net);
      adapter->restore({clock, {}});
      try {
        adapter->start();
      } catch (const std::runtime_error& refused) {
        problem = refused.what();
        return;
      }
      CHECK(adapter->resume_state().clock == 7);
      for (int i = 0; i < 10; ++i) {
        if (tells) adapter->set_optimizer(*optimizer);
        const Tensor loss = backward();
        if (averages) adapter->average_gradients();
        adapter->step(*optimizer, loss);
      }
      if (tells) node.wait_for_all();
      adapter->finish();
    });
    CHECK(torch::equal(flat(*models[0]), flat(*models[1])) == tells);
    if (tells) continue;
    CHECK(problem.find("comes with a checkpoint of step 4 to a run at step 7, and the worker that "
                       "has its weights cannot give them") != std::string::npos);
    CHECK(problem.find("or checkpoints of one step on all workers") != std::string::npos);
    break;  // whatever the optimizer
  }
}

TEST_CASE("update: worker: one that was left out takes the weights of the others and goes on") {
  const Data data = data_of(160);
  const auto models = models_of<Net>(2, 5);
  const auto& [name, kind] = optimizers()[2];
  std::atomic<double> end = 0;
  run_nodes(store(2, 1, [](Config& config) { config.kvstore.update = KvstoreUpdate::worker; }),
            [&](Participant& node) {
              Net& net = *models[node.index];
              const auto optimizer = make(kind, net);
              const auto adapter = make_adapter(node.config, net);
              adapter->start();
              const auto step = [&] {
                optimizer->zero_grad();
                const Tensor loss = loss_of(net, data, 0, worker_rows);
                loss.backward();
                return adapter->step(*optimizer, loss);
              };
              for (int i = 0; i < 10; ++i) step();
              // The second one computes for so long that it is held to hang.
              if (node.index == 0) {
                while (adapter->place().size == 2) step();
                for (int i = 0; i < 5; ++i) step();
              }
              node.wait_for_all();
              if (node.index == 1) {
                const StepReport report = step();
                CHECK(report.outcome == Outcome::dropped);
                CHECK(report.clock >= 15);
                end = report.clock + 30;
              }
              while (end == 0 || adapter->resume_state().clock < end - 1) step();
              CHECK(step().participants == 2);
              node.wait_for_all();
              adapter->finish();
            });
  CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
}

namespace {

// `step`: of the first worker. The second comes after five of them.
void check_refused(const std::function<StepReport(Adapter&, Net&, const Data&)>& step) {
  const Data data = data_of(160);
  const auto models = models_of<Net>(2, 5);
  std::string problem;
  run_nodes(store(2, 1,
                  [](Config& config) {
                    config.kvstore.min_workers = 1;
                    config.kvstore.update = KvstoreUpdate::worker;
                  }),
            [&](Participant& node) {
              Net& net = *models[node.index];
              const auto adapter = make_adapter(node.config, net);
              const auto next = [&] { return step(*adapter, net, data); };
              if (node.index == 0) {
                adapter->start();
                for (int i = 0; i < 5; ++i) next();
              }
              node.wait_for_all();
              if (node.index == 1) {
                try {
                  adapter->start();
                } catch (const std::runtime_error& refused) {
                  problem = refused.what();
                }
                node.wait_for_all();
                return;
              }
              while (adapter->place().size < 2) next();
              while (adapter->place().size == 2) next();
              next();
              node.wait_for_all();
              adapter->finish();
            });
  CHECK(problem.find("cannot give them") != std::string::npos);
}

Tensor backward(Net& net, const Data& data) {
  net.zero_grad();
  Tensor loss = loss_of(net, data, 0, worker_rows);
  loss.backward();
  return loss;
}

}  // namespace

TEST_CASE("update: worker: an optimizer that cannot be given is one line, and the others go on") {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  check_refused([&](Adapter& adapter, Net& net, const Data& data) {
    if (!optimizer) optimizer = make(optimizers()[0].second, net);
    const Tensor loss = backward(net, data);
    adapter.update_send(loss);
    optimizer->step();
    return adapter.update_wait(loss);
  });
}

TEST_CASE("update: worker: of several optimizers none is given, and the others go on") {
  std::vector<std::unique_ptr<torch::optim::SGD>> parts;
  std::size_t steps = 0;
  check_refused([&](Adapter& adapter, Net& net, const Data& data) {
    const auto options = torch::optim::SGDOptions(0.05).momentum(0.9);
    for (const auto& layer : {net.first, net.second})
      if (parts.size() < 2)
        parts.push_back(std::make_unique<torch::optim::SGD>(layer->parameters(), options));
    return adapter.step(*parts[steps++ % 2], backward(net, data));
  });
}

TEST_CASE("update: server: a parameter that was never updated has a new state in a checkpoint") {
  const Data data = data_of(8);
  auto kinds = optimizers();
  kinds.emplace_back("adagrad", [](const std::vector<Tensor>& parameters) {
    return std::make_unique<torch::optim::Adagrad>(
        parameters, torch::optim::AdagradOptions(0.1).initial_accumulator_value(0.5));
  });
  for (const auto& [name, kind] : kinds) {
    CAPTURE(name);
    Net net(5);
    const auto optimizer = make(kind, net);
    run_nodes(store(1, 1, {}), [&](Participant& node) {
      const auto adapter = make_adapter(node.config, net);
      adapter->start();
      CHECK(adapter->take_optimizer_state(*optimizer));
      adapter->leave();
    });
    loss_of(net, data, 0, 8).backward();
    CHECK_NOTHROW(optimizer->step());
  }
}

TEST_CASE("local_update_cpu: the state of the optimizer outlives a new group of parameters") {
  const Data data = data_of(160);
  const auto trained = [&](bool in_store) {
    Net net(5);
    std::vector<Tensor> first = net.parameters();
    std::vector<Tensor> later{first.back()};
    first.pop_back();
    torch::optim::Adam optimizer(first, torch::optim::AdamOptions(0.01));
    Config config;
    config.backend = Backend::kvstore;
    config.kvstore.type = KvstoreType::local_update_cpu;
    const auto adapter = in_store ? make_adapter(config, net) : nullptr;
    if (adapter) adapter->start();
    for (int step = 0; step < 10; ++step) {
      if (step == 5) optimizer.add_param_group(torch::optim::OptimizerParamGroup(later));
      for (Tensor& parameter : net.parameters()) parameter.mutable_grad().reset();
      const Tensor loss = loss_of(net, data, row_of(step, worker_rows, 160), worker_rows);
      loss.backward();
      if (adapter) {
        adapter->step(optimizer, loss);
      } else {
        optimizer.step();
      }
    }
    return flat(net);
  };
  CHECK(relative_distance(trained(true), trained(false)) < 1e-6);
}

TEST_CASE("update: server: a checkpoint has the optimizer's state, and new servers get it") {
  const Data data = data_of(160);
  for (const auto& [name, kind] : optimizers()) {
    for (const std::size_t servers : {1, 2}) {
      CAPTURE(name);
      Net whole(5);
      Net halves(5);
      const auto back_end = store(1, servers, {});
      const auto steps_of = [&](Participant& node, Net& net, torch::optim::Optimizer& optimizer,
                                int from, int until, double clock) {
        const auto adapter = make_adapter(node.config, net);
        if (from > 0) adapter->restore({clock, {}});
        adapter->start();
        CHECK(adapter->resume_state().clock == from);
        for (int step = from; step < until; ++step) {
          optimizer.zero_grad();
          const Tensor loss = loss_of(net, data, row_of(step, worker_rows, 160), worker_rows);
          // Gradients leave in backward() then, but not before the state.
          if (servers == 2) adapter->set_optimizer(optimizer);
          loss.backward();
          adapter->step(optimizer, loss);
        }
        CHECK(adapter->take_optimizer_state(optimizer));
        adapter->finish();
      };
      run_nodes(back_end,
                [&](Participant& node) { steps_of(node, whole, *make(kind, whole), 0, 20, 0); });
      const auto optimizer = make(kind, halves);
      run_nodes(back_end, [&](Participant& node) { steps_of(node, halves, *optimizer, 0, 10, 0); });
      CHECK(optimizer->state().empty() == (name == "sgd"));
      run_nodes(back_end,
                [&](Participant& node) { steps_of(node, halves, *optimizer, 10, 20, 10); });
      CHECK(torch::equal(flat(whole), flat(halves)));
    }
  }
}

}  // namespace dpwa
