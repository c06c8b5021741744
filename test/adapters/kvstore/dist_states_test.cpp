#include <torch/types.h>
#include <torch/utils.h>

#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/store_cluster.h"
#include "test/support/temporary_directory.h"

// Optimizer states that are fetched from servers, and placed on others.

namespace dpwa {
namespace {

using kvstore::default_options;
using kvstore::OptimizerKind;
using test::StoreCluster;

constexpr std::int64_t large = 1'200'000;  // in slices on all servers

const KVStore::Keys keys = {"large", "small"};

KVStore::Tensors gradients(int step) {
  torch::manual_seed(step);
  return {torch::randn({large}), torch::randn({3, 2})};
}

KVStore::Tensors pulled(KVStore& store) {
  KVStore::Tensors outs = {torch::zeros({large}), torch::zeros({3, 2})};
  store.pull(keys, outs);
  return outs;
}

bool equal(const KVStore::Tensors& a, const KVStore::Tensors& b) {
  return torch::equal(a[0], b[0]) && torch::equal(a[1], b[1]);
}

TEST_CASE("kvstore dist: optimizer states go on on another number of servers, and in one process") {
  const test::TemporaryDirectory folder;
  const auto file = folder.path() / "states";
  KVStore::Tensors before, after;
  {
    const StoreCluster cluster(1, KvstoreType::dist_sync, 2,
                               [](KvstoreConfig& store) { store.replicas = 1; });
    KVStore store(cluster.config_of("w1"));
    CHECK_THROWS_WITH_AS(store.save_optimizer_states(file),
                         "optimizer states of a store without an optimizer", KVStoreError);
    store.set_optimizer(default_options(OptimizerKind::adam));
    store.init(keys, {torch::zeros({large}), torch::zeros({3, 2})});
    store.init("untouched", torch::zeros({2}));
    for (int step = 0; step < 3; ++step) store.push(keys, gradients(step));
    store.save_optimizer_states(file);
    before = pulled(store);
    store.push(keys, gradients(3));
    after = pulled(store);
  }
  for (const std::size_t servers : {1, 3}) {
    const StoreCluster cluster(1, KvstoreType::dist_async, servers);
    KVStore store(cluster.config_of("w1"));
    CHECK_THROWS_WITH_AS(
        store.load_optimizer_states(file),
        doctest::Contains("load of key 'large', worker w1: no value has been set by init"),
        KVStoreError);
    store.init(keys, before);
    store.load_optimizer_states(file);  // and its optimizer
    store.push(keys, gradients(3));
    CHECK(equal(pulled(store), after));
    store.set_optimizer(default_options(OptimizerKind::rmsprop));
    CHECK_THROWS_WITH_AS(store.load_optimizer_states(file),
                         doctest::Contains("the optimizer states are those of adam"), KVStoreError);
  }
  KVStore local;
  local.init(keys, before);
  local.load_optimizer_states(file);
  local.push(keys, gradients(3));
  CHECK(equal(pulled(local), after));
}

}  // namespace
}  // namespace dpwa
