#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstddef>
#include <string>

#include "adapters/adapter.h"
#include "test/adapters/kvstore/store_nodes.h"
#include "test/support/temporary_directory.h"

// kvstore.update: auto.
namespace dpwa {

using namespace test;

namespace {

struct Many : torch::nn::Module {
  explicit Many(std::size_t parameters) {
    for (std::size_t i = 0; i < parameters; ++i)
      register_parameter("p" + std::to_string(i), torch::ones({2}));
    to(training_device());
  }
};

// After one step. The optimizer has state only where its step was made.
bool optimizer_ran(std::size_t parameters, KvstoreType type, KvstoreUpdate update,
                   const std::string& snapshots = "") {
  bool ran = false;
  const auto tune = [&](Config& config) {
    config.kvstore.type = type;
    config.kvstore.update = update;
    config.kvstore.snapshots.folder = snapshots;
  };
  run_nodes(store(1, 1, tune), [&](Participant& node) {
    Many many(parameters);
    torch::optim::Adam optimizer(many.parameters(), 0.1);
    const auto adapter = make_adapter(node.config, many);
    adapter->start();
    torch::stack(many.parameters()).sum().backward();
    adapter->step(optimizer, {});
    ran = !optimizer.state().empty();
    CHECK(many.parameters().back()[0].item<float>() == doctest::Approx(0.9));
    adapter->finish();
  });
  return ran;
}

}  // namespace

TEST_CASE("update: auto runs the optimizer on the workers from 1001 parameters on") {
  using enum KvstoreType;
  CHECK_FALSE(optimizer_ran(1000, dist_sync, KvstoreUpdate::automatic));
  CHECK(optimizer_ran(1001, dist_sync, KvstoreUpdate::automatic));
  CHECK(optimizer_ran(1001, dist_ssp, KvstoreUpdate::automatic));  // staleness: 0
  CHECK_FALSE(optimizer_ran(1001, dist_async, KvstoreUpdate::automatic));
  CHECK_FALSE(optimizer_ran(1001, dist_sync, KvstoreUpdate::server));
  const test::TemporaryDirectory folder;
  CHECK_FALSE(optimizer_ran(1001, dist_sync, KvstoreUpdate::automatic, folder.path()));
}

}  // namespace dpwa
