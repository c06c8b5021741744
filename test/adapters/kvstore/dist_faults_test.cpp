#include <signal.h>
#include <torch/types.h>

#include <atomic>
#include <fstream>
#include <string>

#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/store_cluster.h"
#include "test/support/child_process.h"
#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

// Workers as processes, which are killed and stopped, beside one of this process.

namespace dpwa {
namespace {

struct Workers {
  explicit Workers(KvstoreType type)
      : cluster(2, type, 1,
                [](KvstoreConfig& store) { store.lost_after = std::chrono::seconds(2); }) {
    std::ofstream(folder.path() / "cluster.yaml") << to_yaml(cluster.config);
  }
  // As worker w2.
  test::ChildProcess start() const {
    return test::ChildProcess(
        {DPWA_KVSTORE_WORKER, (folder.path() / "cluster.yaml").string(), "w2"}, output(),
        {"OMP_NUM_THREADS=1"});
  }
  std::filesystem::path output() const { return folder.path() / "w2.log"; }
  std::string said() const {
    std::ifstream file(output());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool says(const std::string& text) const { return said().find(text) != std::string::npos; }

  test::TemporaryDirectory folder;
  test::StoreCluster cluster;
};

// Steps of this worker until the value is `expected`: the number of workers whose push counted.
bool steps_until(KVStore& store, float expected) {
  return test::eventually([&] {
    auto value = torch::zeros({4});
    store.pushpull("w", {torch::ones({4})}, {value});
    return value[0].item<float>() == expected;
  });
}

TEST_CASE("kvstore dist: a worker that is killed leaves rounds and barriers to the others") {
  const Workers workers(KvstoreType::dist_sync);
  auto child = workers.start();
  KVStore store(workers.cluster.config_of("w1"));
  store.init("w", torch::full({4}, 7.0));
  store.barrier();
  REQUIRE(steps_until(store, 2));
  child.signal(SIGKILL);
  REQUIRE(steps_until(store, 1));
  store.barrier();  // the second one: the other worker was at the first
  CHECK(store.num_workers() == 1);
  CHECK(store.rank() == 0);
  CHECK(store.num_dead_node(std::chrono::seconds(1)) == 1);
  CHECK(store.num_dead_node(std::chrono::minutes(1)) == 0);

  // It comes back: with the current value, past the first barrier, and in step.
  REQUIRE(workers.says("begins with 7\n"));
  child = workers.start();
  REQUIRE(steps_until(store, 2));
  CHECK(workers.says("begins with 1\n"));
  CHECK(store.num_workers() == 2);
  CHECK(store.num_dead_node(std::chrono::seconds(1)) == 0);
  CHECK(store.dropped_pushes() == 0);
}

TEST_CASE("kvstore dist: a worker that was stopped takes part again when it goes on") {
  const Workers workers(KvstoreType::dist_sync);
  auto child = workers.start();
  KVStore store(workers.cluster.config_of("w1"));
  store.init("w", torch::zeros({4}));
  store.barrier();
  REQUIRE(steps_until(store, 2));
  child.signal(SIGSTOP);
  REQUIRE(steps_until(store, 1));
  CHECK(store.num_workers() == 1);
  child.signal(SIGCONT);
  REQUIRE(steps_until(store, 2));
  CHECK(test::eventually([&] {
    return workers.says("was left out, because this node was silent or hung, and takes part again");
  }));
  CHECK_FALSE(workers.says("fault"));
}

TEST_CASE("kvstore dist: a server that ends holds up neither barriers nor steps") {
  test::StoreCluster cluster(2, KvstoreType::dist_sync, 2, [](KvstoreConfig& store) {
    store.replicas = 1;
    store.lost_after = std::chrono::seconds(2);
  });
  std::atomic<bool> waits{false}, ended{false};
  test::at_once(3, [&](std::size_t index) {
    if (index == 2) {
      CHECK(test::eventually([&] { return waits.load(); }));
      cluster.servers[0].reset();
      ended = true;
      return;
    }
    KVStore store(cluster.config_of("w" + std::to_string(index + 1)));
    const KVStore::Keys keys = {0, 1, 2, 3};  // on both servers
    const KVStore::Tensors zeros(4, torch::zeros({2}));
    store.init(keys, zeros);
    store.push(keys, zeros);
    if (index == 0) waits = true;
    if (index == 1) CHECK(test::eventually([&] { return ended.load(); }));
    store.barrier();
    for (int step = 1; step <= 3; ++step) {
      KVStore::TensorLists outs, gradients;
      for (std::size_t key = 0; key < keys.size(); ++key) {
        outs.push_back({torch::zeros({2})});
        gradients.push_back({torch::full({2}, static_cast<double>(step))});
      }
      store.pushpull(keys, gradients, outs);
      for (const auto& out : outs) CHECK(torch::equal(out[0], torch::full({2}, 2.0 * step)));
    }
    CHECK(store.dropped_pushes() == 0);
    store.barrier();
  });
}

}  // namespace
}  // namespace dpwa
