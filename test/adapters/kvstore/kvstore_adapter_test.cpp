#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "dpwa/kvworker/worker_session.h"
#include "dpwa/net/status_query.h"
#include "test/adapters/kvstore/store_nodes.h"
#include "test/adapters/test_device.h"
#include "test/support/eventually.h"

// Workers of the parameter server in one process, with real servers, against a single process that
// trains on all of their data.
namespace dpwa {

using namespace test;

c10::Device test::training_device() {
  return test_device();
}

namespace {

constexpr int steps = 200;

// One of each kind that servers have.
std::vector<NamedOptimizer> optimizers_of_servers() {
  using namespace torch::optim;
  std::vector<NamedOptimizer> all = optimizers();
  all.push_back(named<SGD>("nesterov", SGDOptions(0.05).momentum(0.9).nesterov(true)));
  all.push_back(named<AdamW>("adamw", AdamWOptions(0.01).weight_decay(0.1)));
  all.push_back(named<Adagrad>("adagrad", AdagradOptions(0.05).weight_decay(1e-3)));
  all.push_back(named<RMSprop>("rmsprop", RMSpropOptions(0.003).momentum(0.5).centered(true)));
  return all;
}

// A learning rate that changes at every step.
void lower_rate(torch::optim::Optimizer& optimizer) {
  for (auto& group : optimizer.param_groups()) {
    group.options().set_lr(0.997 * group.options().get_lr());
  }
}

Tensor one_process(const Data& data, std::int64_t batch, const MakeOptimizer& kind,
                   double clip = 0) {
  Net net(5);
  const auto optimizer = make(kind, net);
  for (int step = 0; step < steps; ++step) {
    lower_rate(*optimizer);
    optimizer->zero_grad();
    loss_of(net, data, row_of(step, batch, data.x.size(0)), batch).backward();
    if (clip > 0) torch::nn::utils::clip_grad_norm_(net.parameters(), clip);
    optimizer->step();
  }
  return flat(net);
}

// The same with a part of each batch on every node: the first one has twice as many rows.
std::vector<Tensor> nodes_of_store(const BackEnd& back_end, const Data& data,
                                   const MakeOptimizer& kind, double clip = 0) {
  const auto nodes = static_cast<std::int64_t>(back_end.nodes);
  const std::int64_t batch = (nodes + 1) * worker_rows;
  const auto models = models_of<Net>(static_cast<int>(nodes), 5);
  std::vector<Tensor> ends(back_end.nodes);
  run_nodes(back_end, [&](Participant& node) {
    Net& net = *models[node.index];
    const auto optimizer = make(kind, net);
    const auto adapter = make_adapter(node.config, net);
    adapter->start();
    const auto index = static_cast<std::int64_t>(node.index);
    const std::int64_t rows = index == 0 ? 2 * worker_rows : worker_rows;
    adapter->set_batch_size(static_cast<std::uint64_t>(rows));
    for (int step = 0; step < steps; ++step) {
      lower_rate(*optimizer);
      optimizer->zero_grad();
      const std::int64_t from =
          row_of(step, batch, data.x.size(0)) + (index == 0 ? 0 : (index + 1) * worker_rows);
      const Tensor loss = loss_of(net, data, from, rows);
      loss.backward();
      if (clip > 0) {
        adapter->average_gradients();
        torch::nn::utils::clip_grad_norm_(net.parameters(), clip);
      }
      const StepReport report = adapter->step(*optimizer, loss);
      CHECK(report.participants == (report.outcome == Outcome::averaged ? back_end.nodes : 1));
    }
    node.wait_for_all();  // whoever is done leaves the epoch that the last step counts
    adapter->finish();
    ends[node.index] = flat(net);
  });
  return ends;
}

void check_all_near(const std::vector<Tensor>& ends, const Tensor& expected) {
  for (const Tensor& end : ends) {
    CHECK(torch::equal(end, ends.front()));
    CHECK(relative_distance(end, expected) <= 1e-5);
  }
}

}  // namespace

TEST_CASE("dist_sync ends where one process with the global batch does") {
  const Data data = data_of(160);
  for (const KvstoreUpdate update : {KvstoreUpdate::server, KvstoreUpdate::worker}) {
    for (const auto& [name, kind] : optimizers_of_servers()) {
      INFO(name << (update == KvstoreUpdate::server ? ", server" : ", worker"));
      const Tensor expected = one_process(data, 4 * worker_rows, kind);
      const BackEnd back_end = store(3, 2, [&](Config& config) { config.kvstore.update = update; });
      check_all_near(nodes_of_store(back_end, data, kind), expected);
    }
  }
}

TEST_CASE("while a step waits for another worker, the status names that worker") {
  const Data data = data_of(160);
  const auto models = models_of<Net>(2, 5);
  run_nodes(store(2, 1, {}), [&](Participant& node) {
    Net& net = *models[node.index];
    const auto optimizer = make(optimizers().front().second, net);
    const auto adapter = make_adapter(node.config, net);
    adapter->start();
    node.wait_for_all();
    const auto noted = [&]() -> std::string {
      const NodeEntry& first = node.config.nodes.front();
      const auto answers = query_status(
          node.config.cluster, {{first.name, {first.host}, first.port}}, std::chrono::seconds(1));
      const auto document = nlohmann::json::parse(answers.front().json, nullptr, false);
      return document.is_object() ? document.value("waits_for", nlohmann::json()).dump() : "";
    };
    const std::string self = nlohmann::json(node.config.self).dump();
    if (node.index == 1) CHECK(eventually([&] { return noted() == self; }));
    const Tensor loss = loss_of(net, data, 0, worker_rows);
    loss.backward();
    adapter->step(*optimizer, loss);
    if (node.index == 0) CHECK(noted() == "null");
    node.wait_for_all();
    adapter->finish();
  });
}

TEST_CASE("clipped gradients of dist_sync are those of the global batch") {
  const Data data = data_of(160);
  const auto& [name, kind] = optimizers()[1];
  const Tensor expected = one_process(data, 3 * worker_rows, kind, 0.05);
  for (const KvstoreUpdate update : {KvstoreUpdate::server, KvstoreUpdate::worker}) {
    const BackEnd back_end = store(2, 1, [&](Config& config) { config.kvstore.update = update; });
    check_all_near(nodes_of_store(back_end, data, kind, 0.05), expected);
  }
}

TEST_CASE("dist_async and dist_ssp with one worker train as torch does") {
  const Data data = data_of(160);
  for (const KvstoreType type : {KvstoreType::dist_async, KvstoreType::dist_ssp}) {
    for (const auto& [name, kind] : optimizers_of_servers()) {
      INFO(name);
      const BackEnd back_end = store(1, 1, [&](Config& config) {
        config.kvstore.type = type;
        config.kvstore.staleness = type == KvstoreType::dist_ssp ? 3 : 0;
      });
      check_all_near(nodes_of_store(back_end, data, kind),
                     one_process(data, 2 * worker_rows, kind));
    }
  }
}

TEST_CASE("compressed gradients train, and all workers have one model") {
  const Data data = data_of(160);
  const auto& [name, kind] = optimizers()[0];
  const Tensor expected = one_process(data, 3 * worker_rows, kind);
  for (const auto type : {kvstore::Compression::fp16, kvstore::Compression::two_bit}) {
    const BackEnd back_end =
        store(2, 1, [&](Config& config) { config.kvstore.compression.type = type; });
    const auto ends = nodes_of_store(back_end, data, kind);
    CHECK(torch::equal(ends[0], ends[1]));
    CHECK(relative_distance(ends[0], expected) < 0.1);
    CHECK(relative_distance(ends[0], expected) > 0);
  }
}

TEST_CASE("a push that is not finite does not count, is reported, and the others go on") {
  const Data data = data_of(160);
  run_nodes(store(2, 1, {}), [&](Participant& node) {
    Net net(5);
    const auto optimizer = make(optimizers()[0].second, net);
    const auto adapter = make_adapter(node.config, net);
    adapter->start();
    for (int step = 0; step < 3; ++step) {
      optimizer->zero_grad();
      Tensor loss = loss_of(net, data, 0, worker_rows);
      const bool broken = node.index == 1 && step == 1;
      if (broken) loss = loss * std::numeric_limits<double>::infinity();
      loss.backward();
      const StepReport report = adapter->step(*optimizer, loss);
      CHECK(report.outcome == (broken ? Outcome::rejected : Outcome::averaged));
      CHECK(report.refused == (broken ? 1 : 0));
      CHECK(flat(net).isfinite().all().item<bool>());
      CHECK(report.clock == step + 1);
    }
    adapter->finish();
  });
}

namespace {

// A parameter that shares its key with no other one, and one that is small.
struct TwoSizes : torch::nn::Module {
  TwoSizes()
      : large(register_parameter("large", torch::ones({8000}))),
        small(register_parameter("small", torch::ones({3}))) {
    to(training_device());
  }
  Tensor large, small;
};

torch::optim::SGD with_momentum(const torch::nn::Module& model) {
  const auto options = torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01);
  return torch::optim::SGD(model.parameters(), options);
}

}  // namespace

TEST_CASE("a step in which no gradient counts anywhere moves nothing, and repeats no former one") {
  constexpr int rounds = 6;
  const auto is_bad = [](int step) { return step == 2 || step == 3; };
  TwoSizes expected;
  auto reference = with_momentum(expected);
  for (int step = 0; step < rounds; ++step) {
    reference.zero_grad();
    if (!is_bad(step)) (expected.large.sum() + expected.small.sum()).backward();
    reference.step();
  }
  struct Case {
    double gradient;  // in the bad steps
    std::uint64_t samples;
  };
  const Case cases[] = {{std::numeric_limits<double>::quiet_NaN(), 1}, {3e38, 1}, {1, 0}};
  for (const Case& each : cases) {
    for (const auto update : {KvstoreUpdate::worker, KvstoreUpdate::server}) {
      for (const bool averages : {false, true}) {
        const auto tune = [&](Config& config) { config.kvstore.update = update; };
        run_nodes(store(2, 1, tune), [&](Participant& node) {
          CAPTURE(each.gradient);
          CAPTURE(averages);
          TwoSizes net;
          auto optimizer = with_momentum(net);
          const auto adapter = make_adapter(node.config, net);
          adapter->start();
          for (int step = 0; step < rounds; ++step) {
            CAPTURE(step);
            const bool bad = is_bad(step);
            optimizer.zero_grad();
            adapter->set_batch_size(bad ? each.samples : 1);
            const Tensor loss = (net.large.sum() + net.small.sum()) * (bad ? each.gradient : 1);
            loss.backward();
            if (averages) adapter->average_gradients();
            if (averages) CHECK(net.large.grad().defined() == !bad);
            const StepReport report = adapter->step(optimizer, {});
            const bool refused = bad && each.samples > 0;
            CHECK(report.outcome == (refused ? Outcome::rejected : Outcome::averaged));
          }
          adapter->finish();
          CHECK(torch::allclose(net.large, expected.large));
          CHECK(torch::allclose(net.small, expected.small));
        });
      }
    }
  }
}

TEST_CASE("a layer that is frozen for some steps is left alone by each update of its own, too") {
  const auto trains = [](int step) { return step < 2 || step > 5; };
  for (const auto type : {KvstoreType::dist_ssp, KvstoreType::dist_async}) {
    TwoSizes expected;
    auto reference = with_momentum(expected);
    const auto tune = [&](Config& config) {
      config.kvstore.type = type;
      config.kvstore.staleness = 2;
    };
    run_nodes(store(1, 1, tune), [&](Participant& node) {
      TwoSizes net;
      auto optimizer = with_momentum(net);
      const auto adapter = make_adapter(node.config, net);
      adapter->start();
      const auto backward = [&](TwoSizes& model, torch::optim::SGD& its, int step) {
        its.zero_grad();
        model.small.requires_grad_(trains(step));
        (model.large.sum() + model.small.sum()).backward();
      };
      for (int step = 0; step < 8; ++step) {
        backward(expected, reference, step);
        reference.step();
        backward(net, optimizer, step);
        adapter->step(optimizer, {});
        CAPTURE(step);
        CHECK(torch::allclose(net.small, expected.small));
      }
      adapter->finish();
    });
  }
}

TEST_CASE("a program may have another default dtype") {
  struct Restored {
    caffe2::TypeMeta before = torch::get_default_dtype();
    ~Restored() { torch::set_default_dtype(before); }
  } restored;
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  for (const auto update : {KvstoreUpdate::worker, KvstoreUpdate::server}) {
    const auto tune = [&](Config& config) { config.kvstore.update = update; };
    run_nodes(store(2, 1, tune), [&](Participant& node) {
      TwoSizes net;
      torch::optim::SGD optimizer(net.parameters(), 0.5);
      const auto adapter = make_adapter(node.config, net);
      adapter->start();
      (net.large * static_cast<double>(node.index)).sum().backward();
      adapter->average_gradients();
      adapter->step(optimizer, {});
      adapter->finish();
      CHECK(net.large[7].item<double>() == 0.75);
      CHECK(net.small[0].item<double>() == 1);
    });
  }
}

TEST_CASE("gradients count when a buffer is not finite") {
  struct Broken : Net {
    Broken() : Net(5) {
      register_buffer("unset", torch::full({3}, std::numeric_limits<float>::quiet_NaN()));
      to(training_device());
    }
  };
  const Data data = data_of(160);
  run_nodes(store(2, 1, {}), [&](Participant& node) {
    Broken net;
    const auto before = flat(net);
    const auto optimizer = make(optimizers()[0].second, net);
    const auto adapter = make_adapter(node.config, net);
    adapter->start();
    const Tensor loss = loss_of(net, data, 0, worker_rows);
    loss.backward();
    const StepReport report = adapter->step(*optimizer, loss);
    CHECK(report.outcome == Outcome::averaged);
    CHECK(report.refused == 0);
    CHECK(!torch::equal(flat(net), before));
    adapter->finish();
  });
}

TEST_CASE("BatchNorm statistics are the mean over the workers") {
  struct Normed : torch::nn::Module {
    Normed() { to(training_device()); }
    torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(6));
  };
  std::vector<Tensor> means(2);
  std::vector<std::shared_ptr<Normed>> models = {std::make_shared<Normed>(),
                                                 std::make_shared<Normed>()};
  const Data data = data_of(64);
  run_nodes(store(2, 1, {}), [&](Participant& node) {
    Normed& model = *models[node.index];
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    const auto adapter = make_adapter(node.config, model);
    adapter->start();
    const auto rows = data.x.narrow(0, static_cast<std::int64_t>(node.index) * 32, 32);
    const Tensor loss = model.norm(rows).square().mean();
    loss.backward();
    adapter->step(optimizer, loss);
    means[node.index] = model.norm->running_mean.clone();
    adapter->finish();
  });
  CHECK(torch::equal(means[0], means[1]));
  CHECK(torch::allclose(means[0], 0.1 * data.x.mean(0), 1e-4, 1e-6));
}

TEST_CASE("a worker that joins later takes the current weights and goes on with the others") {
  const Data data = data_of(160);
  const auto models = models_of<Net>(2, 5);
  const auto seed = flat(*models[0]);
  for (const KvstoreType type : {KvstoreType::dist_sync, KvstoreType::dist_async}) {
    run_nodes(store(2, 1,
                    [&](Config& config) {
                      config.kvstore.type = type;
                      config.kvstore.min_workers = 1;
                    }),
              [&](Participant& node) {
                Net& net = *models[node.index];
                const auto optimizer = make(optimizers()[0].second, net);
                const auto adapter = make_adapter(node.config, net);
                const auto step = [&] {
                  optimizer->zero_grad();
                  const Tensor loss = loss_of(net, data, 0, worker_rows);
                  loss.backward();
                  return adapter->step(*optimizer, loss);
                };
                if (node.index == 0) {
                  adapter->start();
                  for (int i = 0; i < 10; ++i) CHECK(step().clock == i + 1);
                  CHECK(adapter->place().size == 1);
                }
                node.wait_for_all();
                if (node.index == 1) {
                  adapter->start();
                  CHECK(adapter->resume_state().clock >= 10);
                  CHECK(relative_distance(flat(net), seed) > 1e-3);
                }
                while (adapter->place().size < 2) step();
                CHECK(adapter->place().rank == node.index);
                for (int i = 0; i < 30; ++i) step();
                CHECK(adapter->finish().participants == 2);
              });
    CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
  }
}

TEST_CASE("a worker that leaves before its first step is no participant") {
  const Data data = data_of(64);
  run_nodes(store(3, 1, {}), [&](Participant& node) {
    Net net(5);
    const auto optimizer = make(optimizers()[0].second, net);
    const auto adapter = make_adapter(node.config, net);
    adapter->start();
    node.wait_for_all();
    if (node.index == 2) return adapter->leave();
    for (int step = 0; step < 20; ++step) {
      optimizer->zero_grad();
      loss_of(net, data, 0, worker_rows).backward();
      adapter->step(*optimizer, {});
    }
    const FinishReport finished = adapter->finish();
    CHECK(finished.participants == 2);
    CHECK(finished.averaged);
  });
}

TEST_CASE("a worker that comes and makes no step gets the final model, and is no participant") {
  auto update = KvstoreUpdate::server;
  SUBCASE("update: server") {}
  SUBCASE("update: worker") {
    update = KvstoreUpdate::worker;
  }
  const Data data = data_of(64);
  const auto models = models_of<Net>(2, 5);
  std::atomic<bool> came = false;
  run_nodes(store(2, 1,
                  [&](Config& config) {
                    config.kvstore.min_workers = 1;
                    config.kvstore.update = update;
                  }),
            [&](Participant& node) {
              Net& net = *models[node.index];
              const auto optimizer = make(optimizers()[0].second, net);
              const auto adapter = make_adapter(node.config, net);
              const auto step = [&] {
                optimizer->zero_grad();
                loss_of(net, data, 0, worker_rows).backward();
                adapter->step(*optimizer, {});
              };
              if (node.index == 0) {
                adapter->start();
                for (int i = 0; i < 10; ++i) step();
              }
              node.wait_for_all();
              if (node.index == 1) {
                adapter->start();
                came = true;
              }
              while (!came) step();
              const FinishReport finished = adapter->finish();
              CHECK(finished.participants == 1);
              CHECK(finished.averaged == (node.index == 1));
              CHECK(finished.enough);
            });
  if (update == KvstoreUpdate::server) CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
}

TEST_CASE("a worker that is left out before its keys are made joins again") {
  run_nodes(store(1, 1, {}), [](Participant& node) {
    kvstore::WorkerSession session(node.config, wall_clock_us(), nullptr);
    session.join();
    session.client().leave(std::chrono::steady_clock::now() + patience);
    REQUIRE(!session.client().takes_part());
    const std::vector<float> values{1, 2};
    const auto ticket = session.client().init(kvstore::Key("w"), {DType::float32, {2}},
                                              std::as_bytes(std::span(values)));
    CHECK_NOTHROW(session.wait_created(ticket, "w"));
    CHECK(session.client().takes_part());
    session.leave();
  });
}

TEST_CASE("a program that calls its optimizer instead of step() is refused") {
  const Data data = data_of(64);
  run_nodes(store(1, 1, {}), [&](Participant& node) {
    Net net(5);
    const auto optimizer = make(optimizers()[0].second, net);
    const auto adapter = make_adapter(node.config, net);
    adapter->start();
    loss_of(net, data, 0, worker_rows).backward();
    optimizer->step();
    optimizer->zero_grad();
    CHECK_THROWS_AS(loss_of(net, data, 0, worker_rows).backward(), std::logic_error);
  });
}

TEST_CASE("a second backward pass after gradients have left is refused") {
  const Data data = data_of(64);
  run_nodes(store(1, 1, {}), [&](Participant& node) {
    Net net(5);
    const auto optimizer = make(optimizers()[0].second, net);
    const auto adapter = make_adapter(node.config, net);
    adapter->start();
    loss_of(net, data, 0, worker_rows).backward();
    adapter->step(*optimizer, {});
    adapter->set_optimizer(*optimizer);
    loss_of(net, data, 0, worker_rows).backward();
    CHECK_THROWS_AS(loss_of(net, data, 0, worker_rows).backward(), std::logic_error);
    CHECK_THROWS_AS(adapter->average_gradients(), std::logic_error);
    CHECK_NOTHROW(adapter->step(*optimizer, {}));
  });
}

}  // namespace dpwa
