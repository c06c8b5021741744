#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "test/adapters/collective/training_nodes.h"

// Nodes that cannot train together: they differ, leave or do not come.
namespace dpwa {

using namespace test;

TEST_CASE("models that differ are named on every node, and nobody trains") {
  std::vector<std::string> errors(2);
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  for (int rank = 0; rank < 2; ++rank) {
    models.push_back(std::make_shared<torch::nn::Module>());
    models.back()->register_parameter("weight", torch::zeros({3, rank + 4}));
  }
  run(2, [&](int rank, const Config& config) {
    const auto adapter = make_adapter(config, *models[static_cast<std::size_t>(rank)]);
    try {
      adapter->start();
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  for (const std::string& error : errors) {
    CAPTURE(error);
    for (const char* part : {"weight", "[3, 4]", "[3, 5]", "rank 0 ('w1')", "rank 1 ('w2')"})
      CHECK(error.find(part) != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE(
    "settings, optimizers and learning rates that differ end all with one line that says so") {
  struct Case {
    const char* what;
    const char* expected;
  };
  for (const Case& one : {Case{"compression", "'collective.compression' bf16"},
                          Case{"bucket", "'collective.bucket_bytes' 77"}, Case{"class", "Adam"},
                          Case{"rate", "learning rate 0.2"}, Case{"momentum", "momentum 0.9"},
                          Case{"seed", "rank 1 ('w2'): '--seed' 2"}}) {
    INFO(one.what);
    const std::string what = one.what;
    auto models = models_of<Net>(2, 5);
    const Data data = data_of(32);
    std::vector<std::string> errors(2);
    run(2, [&](int rank, const Config& given) {
      Config config = given;
      if (rank == 1 && what == "compression")
        config.collective.compression = GradientCompression::bf16;
      if (rank == 1 && what == "bucket") config.collective.bucket_bytes = 77;
      Net& model = *models[static_cast<std::size_t>(rank)];
      std::unique_ptr<torch::optim::Optimizer> optimizer = std::make_unique<torch::optim::SGD>(
          model.parameters(), rank == 1 && what == "rate" ? 0.2 : 0.1);
      if (rank == 1 && what == "momentum")
        optimizer = std::make_unique<torch::optim::SGD>(
            model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      if (rank == 1 && what == "class")
        optimizer = std::make_unique<torch::optim::Adam>(model.parameters(), 0.1);
      const auto adapter = make_adapter(config, model);
      adapter->require_same("--seed", rank == 1 && what == "seed" ? "2" : "1");
      try {
        adapter->start();
        const Tensor loss = loss_of(model, data, 0, 32);
        loss.backward();
        adapter->step(*optimizer, loss);
      } catch (const std::runtime_error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
    for (const std::string& error : errors) {
      CAPTURE(error);
      CHECK(error.find(one.expected) != std::string::npos);
      CHECK((error.find("the ranks differ in a setting: rank 0 ('w1'): '") != std::string::npos) ==
            (what != "class"));
      CHECK(error.find('\n') == std::string::npos);
    }
  }
}

namespace {

// What two nodes, whose files differ by `change` of the second, end with at the start, before
// start_wait, which is longer than CTest waits.
std::vector<std::string> errors_where_second(const std::function<void(Config&)>& change) {
  auto models = models_of<Net>(2, 5);
  std::vector<std::string> errors(2);
  run(2, [&](int rank, const Config& given) {
    Config config = given;
    config.collective.start_wait = std::chrono::hours(1);
    if (rank == 1) change(config);
    const auto adapter = make_adapter(config, *models[static_cast<std::size_t>(rank)]);
    try {
      adapter->start();
    } catch (const std::runtime_error& error) {
      errors[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return errors;
}

}  // namespace

TEST_CASE("other nodes in the file, or in another order, end all at once and not after the wait") {
  const auto errors =
      errors_where_second([](Config& config) { std::swap(config.nodes[0], config.nodes[1]); });
  CHECK(errors[0] ==
        "the nodes do not come together: 'w2' differs: nodes of the cluster file: w1, w2 on 'w1' "
        "and w2, w1 on 'w2'");
  CHECK(errors[1] ==
        "the nodes do not come together: 'w1' differs: nodes of the cluster file: w2, w1 on 'w2' "
        "and w1, w2 on 'w1'");
}

TEST_CASE("another engine ends all at once, because it could not even connect") {
  const auto errors = errors_where_second(
      [](Config& config) { config.collective.engine = CollectiveEngine::gloo; });
  CHECK(errors[0] ==
        "the nodes do not come together: 'w2' differs: engine of backend collective: dpwa on 'w1' "
        "and gloo on 'w2'");
  CHECK(errors[1] ==
        "the nodes do not come together: 'w1' differs: engine of backend collective: gloo on 'w2' "
        "and dpwa on 'w1'");
}

TEST_CASE("a node may make its steps in halves beside one that does not") {
  auto models = models_of<Net>(2, 5);
  const Data data = data_of(64);
  run(2, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    const auto adapter = make_adapter(config, model);
    adapter->start();
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      const Tensor loss = loss_of(model, data, rank * 32, 32);
      loss.backward();
      if (rank == 0) {
        adapter->step(optimizer, loss);
        continue;
      }
      adapter->update_send(loss);
      optimizer.step();
      CHECK(adapter->update_wait(loss).participants == 2);
    }
    adapter->finish();
  });
  CHECK(torch::equal(flat(*models[0]), flat(*models[1])));
}

TEST_CASE("a node that leaves ends the others with one line that names it") {
  auto models = models_of<Net>(3, 5);
  const Data data = data_of(96);
  std::vector<std::string> errors(3);
  run(3, [&](int rank, const Config& config) {
    Net& model = *models[static_cast<std::size_t>(rank)];
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    const auto adapter = make_adapter(config, model);
    adapter->start();
    try {
      for (int step = 0; step < 1000; ++step) {
        optimizer.zero_grad();
        const Tensor loss = loss_of(model, data, rank * 32, 32);
        loss.backward();  // never throws
        if (rank == 1 && step == 5) {
          adapter->leave();
          return;
        }
        adapter->step(optimizer, loss);
      }
    } catch (const std::runtime_error& error) {
      errors[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  for (const int rank : {0, 2}) {
    const std::string& error = errors[static_cast<std::size_t>(rank)];
    CAPTURE(error);
    CHECK(error.find("needs every node") != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("a node that does not come is named after the wait at the start") {
  auto model = std::make_shared<Net>(5);
  const auto configs = collective_configs(
      2, [](Config& config) { config.collective.start_wait = std::chrono::milliseconds(400); });
  for (const Config& config : configs) {
    const auto adapter = make_adapter(config, *model);
    const std::string absent = config.self == configs[0].self ? configs[1].self : configs[0].self;
    try {
      adapter->start();
      FAIL("it started alone");
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      CAPTURE(text);
      CHECK(text.find("missing: '" + absent + "'") != std::string::npos);
    }
  }
}

TEST_CASE(
    "gradients in the clear beside encrypted nodes need a word, and gossip alone has joins and "
    "daemons") {
  auto model = std::make_shared<Net>(5);
  Config config = collective_configs(2)[0];
  config.security.mode = "psk";
  config.nodes[1].addresses = {"192.0.2.7"};
  CHECK_NOTHROW(make_adapter(config, *model));
  config.collective.engine = CollectiveEngine::gloo;
  CHECK_THROWS_WITH_AS(make_adapter(config, *model),
                       doctest::Contains("collective.plaintext: the gradients"), ConfigError);
  config.collective.plaintext = true;
  CHECK_NOTHROW(make_adapter(config, *model));
  Config attached = config;
  attached.gossip.daemon = true;
  CHECK_THROWS_WITH_AS(make_adapter(attached, *model), doctest::Contains("gossip.daemon"),
                       ConfigError);
  Config joining = config;
  joining.join = {config.nodes[1]};
  CHECK_THROWS_WITH_AS(make_adapter(joining, *model), doctest::Contains("joins"), ConfigError);
}

}  // namespace dpwa
