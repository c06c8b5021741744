#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "adapters/adapter.h"
#include "test/adapters/kvstore/store_nodes.h"

// Gradients that leave in backward(), and are changed before step().
namespace dpwa {

using namespace test;

TEST_CASE("a gradient that is changed after it has left in backward() is refused") {
  struct Rows : torch::nn::Module {
    Rows() { to(training_device()); }
    Tensor loss() {
      const Tensor rows = torch::tensor({0, 2}).to(training_device());
      return torch::embedding(table, rows, -1, false, sparse).sum();
    }
    Tensor table = register_parameter("table", torch::ones({4, 2}));
    bool sparse = false;
  };
  using Change = std::function<void(Rows&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"clipped", [](Rows& rows) { torch::nn::utils::clip_grad_norm_(rows.parameters(), 0.1); }},
      {"clipped by value",
       [](Rows& rows) { torch::nn::utils::clip_grad_value_(rows.parameters(), 0.1); }},
      {"scaled", [](Rows& rows) { rows.table.mutable_grad().mul_(0.5); }},
      {"scaled by one", [](Rows& rows) { rows.table.mutable_grad().mul_(1); }},
      {"taken away", [](Rows& rows) { rows.zero_grad(); }},
      {"another", [](Rows& rows) { rows.table.mutable_grad() = rows.table.grad().clone(); }},
  };
  for (const KvstoreUpdate update : {KvstoreUpdate::server, KvstoreUpdate::worker}) {
    for (const bool sparse : {false, true}) {
      for (const auto& [name, change] : changes) {
        if (sparse && name == "clipped by value") continue;  // LibTorch clips dense ones
        CAPTURE(static_cast<int>(update));
        CAPTURE(sparse);
        CAPTURE(name);
        run_nodes(store(1, 1, [&](Config& config) { config.kvstore.update = update; }),
                  [&](Participant& node) {
                    Rows rows;
                    rows.sparse = sparse;
                    torch::optim::SGD optimizer(rows.parameters(), 0.1);
                    const auto adapter = make_adapter(node.config, rows);
                    adapter->start();
                    for (int step = 0; step < 3; ++step) {
                      adapter->set_optimizer(optimizer);
                      rows.loss().backward();
                      if (step == 2) break;
                      CHECK_NOTHROW(adapter->step(optimizer, {}));
                      optimizer.zero_grad();
                    }
                    const Tensor before = rows.table.grad().clone();
                    change(rows);
                    if (sparse && name == "clipped") {  // LibTorch scales a copy
                      CHECK(torch::equal(rows.table.grad().to_dense(), before.to_dense()));
                      return;
                    }
                    CHECK_THROWS_WITH_AS(adapter->step(optimizer, {}),
                                         doctest::Contains("parameter 'table': its gradient was "
                                                           "changed after it had left"),
                                         std::logic_error);
                  });
      }
    }
  }
}

}  // namespace dpwa
