#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <limits>
#include <string>

#include "dpwa/base/on_exit.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/pulled.h"
#include "test/adapters/kvstore/store_cluster.h"
#include "test/support/eventually.h"

// The class KVStore as workers of real servers.

namespace dpwa {
namespace {

using kvstore::Compression;
using kvstore::default_options;
using kvstore::OptimizerKind;
using test::pulled;
using test::StoreCluster;

kvstore::OptimizerOptions sgd(double rate) {
  auto options = default_options(OptimizerKind::sgd);
  options.learning_rate = rate;
  return options;
}

TEST_CASE("kvstore dist_sync: a step is one update, made of one push of every worker") {
  const StoreCluster cluster(3, KvstoreType::dist_sync, 2);
  cluster.run(3, [](std::size_t index, KVStore& store) {
    CHECK(store.type() == "dist_sync");
    CHECK(store.rank() == static_cast<int>(index));
    CHECK(store.num_workers() == 3);
    CHECK(store.num_dead_node() == 0);
    const auto x = torch::zeros({2, 3});
    store.init("w", x);
    for (int step = 1; step <= 5; ++step) {
      store.push("w", torch::full_like(x, static_cast<double>(step * (index + 1))));
      auto out = torch::zeros_like(x);
      CHECK(store.pull("w", out) == static_cast<std::uint64_t>(step));
      // Without an optimizer the sum replaces the value.
      CHECK(torch::equal(out, torch::full_like(x, step * 6.0)));
    }
    store.set_optimizer(sgd(0.5));
    store.push("w", torch::ones_like(x));
    CHECK(torch::equal(pulled(store, "w", x), torch::full_like(x, 30 - 1.5)));
    CHECK(store.dropped_pushes() == 0);
  });
}

TEST_CASE("kvstore dist_sync: the value of rank 0 is that of all, and broadcast is init and pull") {
  const StoreCluster cluster(2, KvstoreType::dist_sync);
  cluster.run(2, [](std::size_t index, KVStore& store) {
    const auto own = torch::full({4}, static_cast<double>(index + 5));
    store.init(3, own);
    CHECK(torch::equal(pulled(store, 3, own), torch::full({4}, 5.0)));
    auto a = torch::zeros({4}), b = torch::zeros({4});
    store.broadcast(4, own, {a, b});
    CHECK(torch::equal(a, torch::full({4}, 5.0)));
    CHECK(torch::equal(b, a));
  });
}

TEST_CASE("kvstore dist_sync: lists of keys, repeated ones, devices, large and empty values") {
  const StoreCluster cluster(2, KvstoreType::dist_sync, 2);
  cluster.run(2, [](std::size_t, KVStore& store) {
    const auto x = torch::zeros({2}), y = torch::zeros({1'300'000}), none = torch::zeros({0});
    store.init({"a", "b", "none"}, {x, y, none});
    store.push({"a", "b", "a", "none"}, {x + 1, y + 5, x + 2, none}, 7);
    auto a = torch::zeros({2}), again = torch::zeros({2}), b = torch::zeros({1'300'000});
    CHECK(store.pull({"a", "b", "a"}, {a, b, again}) == KVStore::Versions{1, 1, 1});
    CHECK(torch::equal(a, x + 6));
    CHECK(torch::equal(again, x + 6));
    CHECK(torch::equal(b, y + 10));
    pulled(store, "none", none);
    const KVStore::TensorLists values = {{x + 1, x + 2}, {y, y + 1}}, outs = {{a}, {b}};
    CHECK(store.pushpull({"a", "b"}, values, outs) == KVStore::Versions{2, 2});
    CHECK(torch::equal(a, x + 6));
    CHECK(torch::equal(b, y + 2));
    // A push without a pull, and one that has the value in its answer.
    store.push("a", x + 1);
    store.pushpull("a", {x + 3}, {a});
    CHECK(torch::equal(a, x + 6));
    // Into a tensor that is not contiguous.
    auto wide = torch::zeros({2, 2});
    const auto column = wide.select(1, 1);
    store.pull("a", column);
    CHECK(torch::equal(column, x + 6));
    CHECK(wide[0][0].item<float>() == 0);
  });
}

TEST_CASE("kvstore dist_sync: every type of value") {
  const StoreCluster cluster(2, KvstoreType::dist_sync);
  cluster.run(2, [](std::size_t index, KVStore& store) {
    int key = 0;
    for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
      const auto like = torch::zeros({3}, type);
      store.init(key, like);
      const double large = index == 0 ? 256 : -254;
      store.push(key, torch::full({3}, large, type));
      CHECK(torch::equal(pulled(store, key, like), torch::full({3}, 2, type)));
      ++key;
    }
  });
}

TEST_CASE("kvstore dist_sync: a sparse push counts with its rows summed, and rows are pulled") {
  const StoreCluster cluster(2, KvstoreType::dist_sync);
  cluster.run(2, [](std::size_t, KVStore& store) {
    store.init("e", torch::zeros({4, 2}));
    const auto rows = torch::tensor({3, 1, 3}, torch::kLong).unsqueeze(0);
    store.push("e", torch::sparse_coo_tensor(rows, torch::ones({3, 2}), {4, 2}));
    const auto some = store.row_sparse_pull("e", torch::tensor({3, 0, 3}, torch::kLong));
    CHECK(some.is_coalesced());
    CHECK(torch::equal(some.indices().flatten(), torch::tensor({0, 3}, torch::kLong)));
    CHECK(torch::equal(some.values(), torch::tensor({{0.f, 0.f}, {4.f, 4.f}})));
    CHECK_THROWS_WITH_AS(store.row_sparse_pull("e", torch::tensor({4}, torch::kLong)),
                         doctest::Contains("row_sparse_pull of key 'e', worker w"), KVStoreError);
  });
}

TEST_CASE("kvstore dist: what does not fit names key, worker and both shapes, and all goes on") {
  const StoreCluster cluster(2, KvstoreType::dist_sync);
  cluster.run(2, [](std::size_t index, KVStore& store) {
    const auto w = torch::zeros({2, 3});
    store.init("w", w);
    if (index == 1) {
      CHECK_THROWS_WITH_AS(
          store.init("w", torch::zeros({5})),
          "init of key 'w', worker w2: it was initialised before; the store has float32[2,3], "
          "this value is float32[5]",
          KVStoreError);
      CHECK_THROWS_WITH_AS(store.push("v", w),
                           "push of key 'v', worker w2: no value has been set by init",
                           KVStoreError);
      CHECK_THROWS_WITH_AS(store.push("w", torch::zeros({3, 2})),
                           "push of key 'w', worker w2: the tensor is float32[3,2], the value of "
                           "the store float32[2,3]",
                           KVStoreError);
      CHECK_THROWS_WITH_AS(store.pull("w", w.to(at::kDouble)),
                           "pull of key 'w', worker w2: the tensor is float64[2,3], the value of "
                           "the store float32[2,3]",
                           KVStoreError);
      CHECK_THROWS_WITH_AS(store.init(3, w),
                           "init of key 3, worker w2: the keys of this store are texts",
                           KVStoreError);
      CHECK_THROWS_WITH_AS(store.set_updater([](const auto&, const auto&, const auto&) {}),
                           doctest::Contains("type dist_sync cannot run an updater of a program"),
                           KVStoreError);
    }
    // The servers compare the shapes of the workers.
    if (index == 0) store.init("x", torch::zeros({4}));
    store.barrier();
    if (index == 1) {
      CHECK_THROWS_WITH_AS(store.init("x", torch::zeros({5})),
                           "key 'x' is float32[4], worker w2 has float32[5]", KVStoreError);
      store.init("x", torch::zeros({4}));  // the first one was none
    }
    store.push({"w", "x"}, KVStore::Tensors{w + 1, torch::ones({4})});
    CHECK(torch::equal(pulled(store, "w", w), w + 2));
    CHECK(torch::equal(pulled(store, "x", torch::zeros({4})), torch::full({4}, 2.0)));
  });
}

TEST_CASE("kvstore dist_async: an update at each push, and without an optimizer a clear error") {
  const StoreCluster cluster(2, KvstoreType::dist_async);
  cluster.run(2, [](std::size_t index, KVStore& store) {
    const auto w = torch::zeros({3});
    store.init("w", w);
    const std::string refusal = "push of worker w" + std::to_string(index + 1) +
                                ": type dist_async makes an update at each push, which needs an "
                                "optimizer; call set_optimizer before the first push";
    CHECK_THROWS_WITH_AS(store.push("w", w), refusal.c_str(), KVStoreError);
    store.set_optimizer(sgd(1));
    store.barrier();
    if (index == 0) {
      // Nobody is waited for.
      for (int step = 1; step <= 20; ++step) {
        auto out = torch::zeros({3});
        store.pushpull("w", {w + 1}, {out});
        CHECK(torch::equal(out, w - step));
      }
    }
    store.barrier();
    store.push("w", w + 1);
    store.barrier();  // what was pushed before it is seen after it
    CHECK(torch::equal(pulled(store, "w", w), w - 22));
  });
}

TEST_CASE("kvstore dist_async: one worker equals a store of one process") {
  const StoreCluster cluster(1, KvstoreType::dist_async);
  cluster.run(1, [](std::size_t, KVStore& store) {
    KVStore local;
    const auto w = torch::zeros({1000});
    for (KVStore* each : {&store, &local}) {
      each->set_optimizer(default_options(OptimizerKind::adamw));
      each->init(0, w);
      for (int step = 0; step < 50; ++step) {
        torch::manual_seed(step);
        each->push(0, torch::randn({1000}));
      }
    }
    CHECK(torch::equal(pulled(store, 0, w), pulled(local, 0, w)));
  });
}

// The steps that the first worker makes before the second one pushes at all.
TEST_CASE("kvstore dist_ssp: a worker is at most `staleness` steps ahead of the slowest") {
  constexpr std::uint64_t staleness = 3;
  const StoreCluster cluster(2, KvstoreType::dist_ssp, 1,
                             [](KvstoreConfig& store) { store.staleness = staleness; });
  std::atomic<int> steps{0};
  cluster.run(2, [&](std::size_t index, KVStore& store) {
    const auto w = torch::zeros({2});
    store.set_optimizer(sgd(1));
    store.init("w", w);
    store.barrier();
    auto out = torch::zeros({2});
    if (index == 0) {
      for (int step = 0; step < 10; ++step) {
        store.pushpull("w", {w + 1}, {out});
        ++steps;
      }
    } else {
      // Before the first push of this worker, the other one waits after `staleness` steps.
      CHECK(test::eventually([&] { return steps == staleness; }));
      for (int step = 0; step < 10; ++step) {
        CHECK(steps <= step + static_cast<int>(staleness));
        store.pushpull("w", {w + 1}, {out});
      }
    }
    store.barrier();
    CHECK(torch::equal(pulled(store, "w", w), w - 20));
  });
}

TEST_CASE("kvstore dist_ssp: a worker that comes later may pull before its first push") {
  const StoreCluster cluster(2, KvstoreType::dist_ssp, 2, [](KvstoreConfig& store) {
    store.staleness = 3;
    store.min_workers = 1;
  });
  std::atomic<int> steps{0};
  std::atomic<bool> other_is_done{false};
  const auto w = torch::zeros({2});
  test::at_once(2, [&](std::size_t index) {
    if (index == 1) CHECK(test::eventually([&] { return steps >= 20; }));
    // When the second one leaves, nobody waits for it any more.
    const OnExit left([&] { other_is_done = other_is_done || index == 1; });
    KVStore store(cluster.config_of("w" + std::to_string(index + 1)));
    store.set_optimizer(sgd(1));
    const KVStore::Keys keys = {0, 1, 2, 3};  // on both servers
    store.init(keys, KVStore::Tensors(4, w));
    auto out = torch::zeros({2});
    if (index == 0) {
      for (; !other_is_done; ++steps) {
        for (const auto& key : keys) store.pushpull(key, {w + 1}, {out});
      }
    } else {
      for (const auto& key : keys) store.pull(key, {out});
      CHECK(out[0].item<float>() <= -20);
      for (int step = 0; step < 20; ++step) {
        for (const auto& key : keys) store.pushpull(key, {w + 1}, {out});
      }
    }
    CHECK(store.dropped_pushes() == 0);
    if (index == 1) return;
    for (const auto& key : keys) CHECK(torch::equal(pulled(store, key, w), w - 20 - steps.load()));
  });
}

TEST_CASE("kvstore dist_ssp with staleness 0 is dist_sync") {
  const StoreCluster cluster(2, KvstoreType::dist_ssp);
  cluster.run(2, [](std::size_t index, KVStore& store) {
    const auto w = torch::zeros({2});
    store.init("w", w);
    for (int step = 1; step <= 5; ++step) {
      store.push("w", w + static_cast<double>(index + 1) * step);
      CHECK(torch::equal(pulled(store, "w", w), w + 3 * step));
    }
  });
}

TEST_CASE("kvstore dist: handles of pushes and pulls that are under way") {
  const StoreCluster cluster(2, KvstoreType::dist_sync);
  std::atomic<bool> pushed{false};
  cluster.run(2, [&](std::size_t index, KVStore& store) {
    const auto w = torch::zeros({2});
    store.init("w", w);
    store.barrier();
    auto out = torch::zeros({2});
    if (index == 0) {
      auto push = store.push_async({"w"}, {{w + 1}});
      auto pull = store.pull_async({"w"}, {{out}}, 3);
      { auto dropped = store.pull_async({"w"}, {{out}}); }
      CHECK_FALSE(push.done());
      CHECK_FALSE(pull.done());
      pushed = true;
      CHECK(push.wait() == KVStore::Versions{1});
      CHECK(pull.wait() == KVStore::Versions{1});
      CHECK(pull.wait() == KVStore::Versions{1});  // once more
      CHECK(push.done());
      CHECK(pull.done());
    } else {
      CHECK(test::eventually([&] { return pushed.load(); }));
      auto both = store.pushpull_async({"w"}, {{w + 2}}, {{out}});
      CHECK(both.wait() == KVStore::Versions{1});
    }
    CHECK(torch::equal(out, w + 3));
    // done() alone gets there, too.
    auto push = store.push_async({"w"}, {{w + 1}});
    CHECK(test::eventually([&] { return push.done(); }));
  });
}

TEST_CASE("kvstore dist: a push that is not finite does not count") {
  const StoreCluster cluster(2, KvstoreType::dist_sync);
  cluster.run(2, [](std::size_t index, KVStore& store) {
    const auto w = torch::zeros({2});
    store.init("w", w);
    const float bad = std::numeric_limits<float>::quiet_NaN();
    store.push("w", index == 0 ? torch::full({2}, bad) : w + 4);
    CHECK(torch::equal(pulled(store, "w", w), w + 4));
    CHECK(store.dropped_pushes() == (index == 0 ? 1 : 0));
    store.push("w", w + 1);
    CHECK(torch::equal(pulled(store, "w", w), w + 2));
    CHECK(store.dropped_pushes() == (index == 0 ? 1 : 0));
  });
}

TEST_CASE("kvstore dist: compressed gradients arrive with what they kept back") {
  const StoreCluster cluster(2, KvstoreType::dist_sync);
  cluster.run(2, [](std::size_t, KVStore& store) {
    const auto w = torch::zeros({20});
    store.init("w", w);
    store.set_gradient_compression({Compression::two_bit, 0.5});
    store.push("w", w + 0.3);
    CHECK(torch::equal(pulled(store, "w", w), w));
    store.push("w", w + 0.3);
    CHECK(torch::equal(pulled(store, "w", w), w + 1));
    store.set_gradient_compression({});
    store.push("w", w + 0.25);
    CHECK(torch::equal(pulled(store, "w", w), w + 0.5));
    CHECK_THROWS_AS(store.set_gradient_compression({Compression::two_bit, -1}), KVStoreError);
  });
}

TEST_CASE("kvstore dist: what the servers refuse is told by the next call for the key") {
  // The value and its sum, 400 bytes each, fit; the two arrays of adam do not.
  const StoreCluster cluster(1, KvstoreType::dist_sync, 1,
                             [](KvstoreConfig& store) { store.memory_bytes = 5000; });
  cluster.run(1, [](std::size_t, KVStore& store) {
    const auto w = torch::zeros({100});
    store.init("w", w);
    store.set_optimizer(default_options(OptimizerKind::adam));
    store.push("w", w + 1);
    CHECK_THROWS_WITH_AS(store.pull("w", w.clone()), doctest::Contains("beyond its bound of 5000"),
                         KVStoreError);
    CHECK_THROWS_WITH_AS(store.push_async({"w"}, {{w + 1}}).wait(),
                         doctest::Contains("key 'w', worker w1: server s1 holds"), KVStoreError);
    store.set_optimizer(sgd(1));
    store.push("w", w + 1);
    CHECK(torch::equal(pulled(store, "w", w), w - 1));
  });
}

TEST_CASE("kvstore dist: without servers the constructor ends in time and says why") {
  StoreCluster cluster(1, KvstoreType::dist_sync, 1,
                       [](KvstoreConfig& store) { store.start_wait = std::chrono::seconds(2); });
  cluster.servers.clear();
  CHECK_THROWS_WITH_AS(KVStore(cluster.config_of("w1")), doctest::Contains("; server 's1': "),
                       KVStoreError);
  CHECK_THROWS_WITH_AS(KVStore(cluster.config_of("w9")), "nodes: no node is named 'w9'",
                       ConfigError);
  Config local = cluster.config_of("w1");
  local.kvstore.type = KvstoreType::local_allreduce_cpu;
  CHECK(KVStore(local).type() == "local_allreduce_cpu");
}

}  // namespace
}  // namespace dpwa
