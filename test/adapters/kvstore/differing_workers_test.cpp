#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>

#include "adapters/adapter.h"
#include "test/adapters/kvstore/store_nodes.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"

// Workers of the parameter server whose programs or models differ, and those that find nobody.
namespace dpwa {

using namespace test;

TEST_CASE("what does not fit is one line that names it") {
  const auto problem_of = [](const BackEnd& back_end,
                             const std::function<void(Participant&)>& body) {
    std::string problem;
    std::mutex mutex;
    run_nodes(back_end, [&](Participant& node) {
      try {
        body(node);
      } catch (const std::runtime_error& error) {
        const std::scoped_lock lock(mutex);
        problem = error.what();
      }
      node.wait_for_all();
    });
    return problem;
  };
  SUBCASE("another setting") {
    const auto problem = problem_of(store(2, 1, {}), [](Participant& node) {
      Net net(5);
      const auto adapter = make_adapter(node.config, net);
      adapter->require_same("--seed", node.index == 0 ? "1" : "2");
      adapter->start();
      node.wait_for_all();
      torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
      const Data data = data_of(4);
      const auto loss = loss_of(net, data, 0, 4);
      loss.backward();
      adapter->step(optimizer, loss);
      CHECK(adapter->finish().participants == 1);  // not the one that was refused
    });
    CHECK(problem ==
          "--seed: 2 on 'w2' and 1 in the run; accepted: the same on all nodes, and as before "
          "where the servers continue from a snapshot");
  }
  SUBCASE("another setting that is no number") {
    const auto problem = problem_of(store(2, 1, {}), [](Participant& node) {
      Net net(5);
      const auto adapter = make_adapter(node.config, net);
      adapter->require_same("--split", node.index == 0 ? "iid" : "sorted");
      adapter->start();
      node.wait_for_all();
    });
    CHECK(problem.starts_with("--split: sorted on 'w2' and iid in the run; "));
  }
  SUBCASE("a setting that one program has and the other has not") {
    const auto problem = problem_of(store(2, 1, {}), [](Participant& node) {
      Net net(5);
      const auto adapter = make_adapter(node.config, net);
      adapter->require_same("--schedule", node.index == 0 ? "taper" : "constant");
      if (node.index == 0) adapter->require_same("--steps", "100");
      adapter->start();
      node.wait_for_all();
    });
    CHECK(problem.starts_with("--schedule: constant on 'w2' and taper in the run; "));
  }
  SUBCASE("other data of workers that do not step together is a warning") {
    const LogFile log;
    const auto apart =
        store(2, 1, [](Config& config) { config.kvstore.type = KvstoreType::dist_async; });
    const auto problem = problem_of(apart, [](Participant& node) {
      Net net(5);
      const auto adapter = make_adapter(node.config, net);
      adapter->require_same("--data", node.index == 0 ? "mnist" : "synthetic");
      adapter->require_same("--split", "iid");
      adapter->require_same("--seed", node.index == 0 ? "1" : "2");
      adapter->require_same("--batch-size", node.index == 0 ? "32" : "64");
      adapter->start();
      node.wait_for_all();
    });
    CHECK(problem.empty());
    CHECK(log.count("--data: synthetic on 'w2' and mnist in the run") == 1);
    CHECK(log.count("--seed: 2 on 'w2' and 1 in the run; workers may share samples") == 1);
    CHECK(log.count("--split") == 0);
    CHECK(log.count("--batch-size") == 0);
  }
  SUBCASE("another shape") {
    const auto problem = problem_of(store(2, 1, {}), [](Participant& node) {
      torch::nn::Linear layer(3, node.index == 0 ? 4 : 5);
      const auto adapter = make_adapter(node.config, *layer);
      adapter->start();
      node.wait_for_all();
    });
    CHECK(problem ==
          "node 'w2' has another model than the run: key 1 is 'weight' float32[5,3], and that of "
          "the run 'weight' float32[4,3]; 2 keys of 20 elements here, 2 keys of 16 elements in the "
          "run; accepted: the same keys, shapes and types on all nodes");
  }
  SUBCASE("a model that lacks keys of the run") {
    const auto problem = problem_of(store(2, 1, {}), [](Participant& node) {
      const bool bias = node.index == 0;
      torch::nn::Linear layer(torch::nn::LinearOptions(3, 4).bias(bias));
      const auto adapter = make_adapter(node.config, *layer);
      adapter->start();
      node.wait_for_all();
    });
    CHECK(problem.find("the run: it lacks the key 'bias' of the run; 1 key of 12") !=
          std::string::npos);
  }
  SUBCASE("a parameter that is frozen here only") {
    const auto problem = problem_of(store(2, 1, {}), [](Participant& node) {
      torch::nn::Linear layer(3, 4);
      layer->bias.set_requires_grad(node.index == 0);
      const auto adapter = make_adapter(node.config, *layer);
      adapter->start();
      node.wait_for_all();
    });
    CHECK(problem.find("key 2 is 'bias' float32[4] frozen, and") != std::string::npos);
  }
  SUBCASE("too few workers") {
    const auto alone = store(
        2, 1, [](Config& config) { config.kvstore.start_wait = std::chrono::milliseconds(300); });
    const auto problem = problem_of(alone, [](Participant& node) {
      if (node.index == 1) return;
      Net net(5);
      make_adapter(node.config, net)->start();
    });
    CHECK(problem.find("the first step waits for 2 (kvstore.min_workers)") != std::string::npos);
  }
  SUBCASE("no server") {
    const auto nowhere = store(1, 0, [](Config& config) {
      config.kvstore.start_wait = std::chrono::seconds(2);
      NodeEntry server;
      server.name = "s1";
      server.port = 1;
      config.kvstore.servers = {server};
    });
    const auto problem = problem_of(nowhere, [](Participant& node) {
      Net net(5);
      make_adapter(node.config, net)->start();
    });
    const std::string begin = "node 'w1' does not take part after ";
    CHECK(problem.starts_with(begin));
    CHECK(std::atoi(problem.substr(std::min(problem.size(), begin.size())).c_str()) >= 2000);
    CHECK(problem.find("server 's1': ") != std::string::npos);
  }
}

TEST_CASE("a worker that alone calls average_gradients() says what the others have to call") {
  const Data data = data_of(160);
  const test::LogFile log;
  const auto tune = [](Config& config) { config.kvstore.start_wait = std::chrono::seconds(60); };
  // Both at once, as each waits for ten seconds. The first one makes the keys.
  test::at_once(2, [&](std::size_t alone) {
    run_nodes(store(2, 1, tune), [&](Participant& node) {
      Net net(5);
      const auto optimizer = make(optimizers()[0].second, net);
      const auto adapter = make_adapter(node.config, net);
      adapter->start();
      loss_of(net, data, 0, worker_rows).backward();
      node.wait_for_all();
      if (node.index != alone) {
        const std::string other = "w" + std::to_string(alone == 0 ? 2 : 1);
        CHECK(eventually(
            [&] {
              return log.has(
                  "' (all workers have to call average_gradients() or update_send() in "
                  "each step); workers that take part: " +
                  other);
            },
            std::chrono::seconds(60)));
      }
      adapter->average_gradients();
      adapter->step(*optimizer, {});
      node.wait_for_all();
      adapter->finish();
    });
  });
}

TEST_CASE("dist_async: a worker has the others' values of what it does not train") {
  const Data data = data_of(16);
  const auto models = models_of<Net>(2, 5);
  const Tensor before = models[1]->first->weight.clone();
  run_nodes(store(2, 2, [](Config& config) { config.kvstore.type = KvstoreType::dist_async; }),
            [&](Participant& node) {
              Net& net = *models[node.index];
              torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
              const auto adapter = make_adapter(node.config, net);
              adapter->start();
              node.wait_for_all();
              if (node.index == 1) net.first->weight.requires_grad_(false);
              for (int step = 0; step < 20; ++step) {
                if (node.index == 1 && step == 0) node.wait_for_all();  // w1 has made its steps
                optimizer.zero_grad();
                const Tensor loss = loss_of(net, data, 0, 8);
                loss.backward();
                adapter->step(optimizer, loss);
              }
              if (node.index == 0) node.wait_for_all();
              node.wait_for_all();
              CHECK(torch::equal(models[0]->first->weight, models[1]->first->weight));
              node.wait_for_all();
              adapter->leave();
            });
  CHECK_FALSE(torch::equal(models[1]->first->weight, before));
}

}  // namespace dpwa
