#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "dpwa/members/sync_plan.h"
#include "test/adapters/collective/training_nodes.h"
#include "test/support/log_file.h"
#include "test/support/moving_host.h"

// What keeps the models of a group equal, and what ends a run whose models are not.
namespace dpwa {

using namespace test;

namespace {

std::unique_ptr<torch::optim::Optimizer> momentum(const Net& model) {
  return std::make_unique<torch::optim::SGD>(model.parameters(),
                                             torch::optim::SGDOptions(0.05).momentum(0.9));
}

// The lines with which two nodes end, of which the second does `spoil` before step `at`.
std::vector<std::string> ends_of(int at,
                                 const std::function<void(Net&, torch::optim::Optimizer&)>& spoil) {
  const Data data = data_of(64);
  auto models = models_of<Net>(2, 5);
  std::vector<std::string> ends(2);
  run(2, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    const auto optimizer = momentum(model);
    const auto adapter = make_adapter(config, model);
    try {
      adapter->start();
      for (int step = 0; step < 150; ++step) {
        if (rank == 1 && step == at) spoil(model, *optimizer);
        make_steps(*adapter, rank, model, *optimizer, data, 1);
      }
      adapter->finish();
    } catch (const std::runtime_error& error) {
      ends[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return ends;
}

using WeightsByClock = std::map<double, Tensor>;

void check_equal_at_common_clocks(const WeightsByClock& of_one, const WeightsByClock& of_other) {
  int common = 0;
  for (const auto& [clock, weights] : of_one) {
    const auto other = of_other.find(clock);
    if (other == of_other.end()) continue;
    CAPTURE(clock);
    CHECK(torch::equal(weights, other->second));
    ++common;
  }
  CHECK(common >= 10);
}

}  // namespace

// A newcomer (rank 2) has formed a group with the others when one of these (rank 1) is lost before
// their first exchange.
TEST_CASE("a newcomer takes over the optimizer's state though its first group comes to nothing") {
  const Data data = data_of(32);
  auto models = models_of<Net>(3, 5);
  Net returned(6);
  std::atomic<bool> gone = false;
  std::atomic<bool> entered = false;
  std::atomic<bool> finished = false;
  WeightsByClock of_first;
  WeightsByClock of_newcomer;
  run(
      3,
      [&](int rank, const Config& config) {
        Net& model = *models[static_cast<std::size_t>(rank)];
        const auto optimizer = momentum(model);
        auto adapter = make_adapter(config, model);
        adapter->start();
        if (rank == 2) {
          make_steps(*adapter, 0, model, *optimizer, data, 3);
          adapter.reset();
          gone = true;
          const auto fresh = momentum(returned);
          adapter = make_adapter(config, returned);
          adapter->start();
          entered = true;
          while (!finished) {
            make_steps(*adapter, 0, returned, *fresh, data, 1);
            of_newcomer[adapter->resume_state().clock] = flat(returned);
          }
          adapter->finish();
          return;
        }
        bool shrunk = false;
        for (int after = 0; after < 20;) {
          make_steps(*adapter, 0, model, *optimizer, data, 1);
          const std::size_t size = adapter->place().size;
          shrunk = shrunk || (gone && size == 2);
          if (rank == 1 && shrunk && size == 3) return;
          if (rank == 0) of_first[adapter->resume_state().clock] = flat(model);
          if (entered && size == 2) ++after;
        }
        finished = true;
        adapter->finish();
      },
      [](Config& config) { config.collective.on_lost_rank = OnLostRank::shrink; });
  check_equal_at_common_clocks(of_newcomer, of_first);
}

// Rank 2 ends, and its name leads to another address when it comes back.
TEST_CASE("a rank that comes back at another address takes part again") {
  MovingHost name("rank.test", "127.0.0.1");
  const Data data = data_of(32);
  auto models = models_of<Net>(3, 5);
  Net returned(6);
  std::atomic<bool> entered = false;
  const auto at = [](Config config, const std::string& address) {
    config.nodes[2].host = "rank.test";
    config.nodes[2].addresses = {address};
    config.nodes[2].bind_address = address;
    config.collective.on_lost_rank = OnLostRank::shrink;
    return config;
  };
  run(3, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    const auto optimizer = momentum(model);
    auto adapter = make_adapter(at(config, "127.0.0.1"), model);
    adapter->start();
    make_steps(*adapter, 0, model, *optimizer, data, 3);
    if (rank == 2) {
      adapter.reset();
      name.move("127.0.0.2");
      const auto fresh = momentum(returned);
      adapter = make_adapter(at(config, "127.0.0.2"), returned);
      adapter->start();
      make_steps(*adapter, 0, returned, *fresh, data, 5);
      entered = true;
      adapter->finish();
      return;
    }
    while (!entered) make_steps(*adapter, 0, model, *optimizer, data, 1);
    adapter->finish();
  });
  CHECK(torch::equal(flat(returned), flat(*models[0])));
}

namespace {

// The optimizer of a node, whose memory stays after its end: says whether it is used then.
struct Ending : torch::optim::SGD {
  explicit Ending(const Net& model)
      : SGD(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)) {}
  void save(torch::serialize::OutputArchive& archive) const override {
    used_after_end = used_after_end || ended;
    SGD::save(archive);
  }
  bool ended = false;
  mutable bool used_after_end = false;
};

}  // namespace

// Rank 2 leaves and comes back; rank 0, whose state it takes over, then has no more data.
TEST_CASE("an optimizer may end before finish() though a node comes meanwhile") {
  const LogFile log;
  const Data data = data_of(32);
  auto models = models_of<Net>(3, 5);
  Net returned(6);
  std::atomic<bool> finished = false;
  std::optional<bool> used_after_end;
  WeightsByClock of_second;
  WeightsByClock of_newcomer;
  run(
      3,
      [&](int rank, const Config& config) {
        Net& model = *models[static_cast<std::size_t>(rank)];
        Ending optimizer(model);
        auto adapter = make_adapter(config, model);
        adapter->start();
        if (rank == 2) {
          make_steps(*adapter, 0, model, optimizer, data, 3);
          adapter.reset();
          Ending fresh(returned);
          adapter = make_adapter(config, returned);
          adapter->start();
          while (!finished) {
            make_steps(*adapter, 0, returned, fresh, data, 1);
            of_newcomer[adapter->resume_state().clock] = flat(returned);
          }
          adapter->finish();
          return;
        }
        // A line of the end of the step: the next one would be the first with the newcomer.
        const std::string entered = "rank " + std::to_string(rank) + " of 3";
        for (int after = 0; after < (rank == 0 ? 1 : 20);) {
          make_steps(*adapter, 0, model, optimizer, data, 1);
          if (rank == 1) of_second[adapter->resume_state().clock] = flat(model);
          if (log.count(entered) == 2) ++after;
        }
        if (rank == 1) finished = true;
        optimizer.ended = true;
        adapter->finish();
        if (rank == 0) used_after_end = optimizer.used_after_end;
      },
      [](Config& config) { config.collective.on_lost_rank = OnLostRank::shrink; });
  CHECK(used_after_end == false);
  check_equal_at_common_clocks(of_newcomer, of_second);
}

TEST_CASE("the optimizer that others take over is that of the source, or of one that still steps") {
  using members::owner_of_optimizer;
  using Optimizers = std::vector<std::int64_t>;
  CHECK(owner_of_optimizer(Optimizers{7, 8, 9}, 1, {false, false, true}) == 1);
  CHECK(owner_of_optimizer(Optimizers{0, 7, 8}, 0, {false, true, false}) == 2);
  CHECK(owner_of_optimizer(Optimizers{0, 7, 8}, 0, {false, true, true}) == 1);
  CHECK(owner_of_optimizer(Optimizers{0, 0}, 0, {false, true}) == std::nullopt);
}

TEST_CASE("weights that differ on one node end all nodes soon") {
  const auto ends = ends_of(5, [](Net& model, torch::optim::Optimizer&) {
    const torch::NoGradGuard no_grad;
    model.second->bias[1] += 1e-3;
  });
  for (const std::string& end : ends)
    CHECK(end.find(" ends at clock 8, because the weights of 'w2' differ") != std::string::npos);
}

TEST_CASE("an optimizer's state that differs from the start on ends all nodes") {
  const auto ends = ends_of(0, [](Net& model, torch::optim::Optimizer& optimizer) {
    for (const auto& parameter : model.first->parameters()) {
      auto state = std::make_unique<torch::optim::SGDParamState>();
      state->momentum_buffer(torch::ones_like(parameter));
      optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
    }
  });
  for (const std::string& end : ends) {
    CAPTURE(end);
    CHECK(end.find("'state' checksum ") != std::string::npos);
  }
}

TEST_CASE("a sparse gradient ends backward() with one line that names the parameter") {
  const auto configs = collective_configs(1);
  torch::nn::Module model;
  auto table = model.register_parameter("table", torch::ones({4, 2}));
  const auto adapter = make_adapter(configs.front(), model);
  adapter->start();
  const auto rows = torch::tensor({0, 2});
  const auto loss = torch::embedding(table, rows, -1, false, /*sparse=*/true).sum();
  try {
    loss.backward();
    FAIL("no error");
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()) ==
          "the gradient of 'table' is sparse, which this back end does not average; accepted: "
          "dense gradients, as of an embedding with sparse(false)");
  }
}

}  // namespace dpwa
