#include <torch/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "dpwa/net/status_query.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/store_cluster.h"
#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

// Snapshots of servers whose workers use the class KVStore, with keys that are not pushed equally
// often.
namespace dpwa {
namespace {

using test::StoreCluster;

// Each push adds 1, so that a value is the number of pushes that counted.
constexpr auto counting = [] {
  auto options = kvstore::default_options(kvstore::OptimizerKind::sgd);
  options.learning_rate = 1;
  return options;
};

struct Counters {
  explicit Counters(KVStore& its_store) : store(its_store) {
    store.set_optimizer(counting());
    store.init({"a", "b"}, KVStore::Tensors{zero, zero});
  }
  void push_a() { store.push("a", minus_one); }
  void push_both() { store.push({"b", "a"}, KVStore::Tensors{minus_one, minus_one}); }
  double value(const char* key) {
    auto out = torch::zeros({1});
    store.pull(key, out);
    return out.item<double>();
  }

  KVStore& store;
  at::Tensor zero = torch::zeros({1});
  at::Tensor minus_one = torch::full({1}, -1.0);
};

struct Cluster : StoreCluster {
  Cluster(KvstoreType type, const test::TemporaryDirectory& folder, std::size_t workers = 1)
      : StoreCluster(workers, type, 1, [&](KvstoreConfig& kvstore) {
          kvstore.snapshots.folder = folder.path().string();
          kvstore.snapshots.every = std::chrono::milliseconds(50);
          kvstore.min_workers = 1;
        }) {}
  // The number of the last complete snapshot; 0: none.
  unsigned snapshot() const {
    const NodeEntry& server = config.kvstore.servers.front();
    const auto answers = query_status(config.cluster, {{server.name, {server.host}, server.port}},
                                      std::chrono::seconds(10), nullptr);
    const auto status = nlohmann::json::parse(answers.front().json, nullptr, false);
    return status.is_object() ? status["snapshot"]["number"].get<unsigned>() : 0;
  }
  void stop() { servers[0].reset(); }
};

TEST_CASE("kvstore: a snapshot has all pushes of a call, also where one key is ahead") {
  for (const auto type : {KvstoreType::dist_sync, KvstoreType::dist_async}) {
    const test::TemporaryDirectory folder;
    Cluster cluster(type, folder);
    for (int life = 0; life < 3; ++life) {
      {
        KVStore store(cluster.config_of("w1"));
        Counters counters(store);
        if (life == 0) {
          for (int i = 0; i < 10; ++i) counters.push_a();
        }
        const unsigned before = cluster.snapshot();
        CHECK(test::eventually([&] {
          for (int i = 0; i < 20; ++i) {
            counters.push_both();
            counters.value("a");  // at the pace of the servers
          }
          return cluster.snapshot() >= before + 3;
        }));
        cluster.stop();  // while the worker is there: no snapshot of its last pushes
      }
      cluster.start_again(0);
      KVStore store(cluster.config_of("w1"));
      Counters counters(store);
      const double b = counters.value("b");
      CHECK(b > 0);
      CHECK(counters.value("a") == b + 10);
    }
  }
}

TEST_CASE("kvstore: a worker that waits at a barrier or only pulls holds no snapshot up") {
  const test::TemporaryDirectory folder;
  Cluster cluster(KvstoreType::dist_async, folder, 2);
  KVStore first(cluster.config_of("w1"));
  KVStore second(cluster.config_of("w2"));
  Counters pushes(first);
  Counters waits(second);
  const auto goes_on = [&] {
    const unsigned before = cluster.snapshot();
    return test::eventually([&] {
      pushes.push_both();
      pushes.value("a");  // at the pace of the servers
      waits.value("a");
      return cluster.snapshot() >= before + 3;
    });
  };
  SUBCASE("before its first push") {
    CHECK(goes_on());
  }
  SUBCASE("after its last push") {
    waits.push_both();
    CHECK(goes_on());
  }
  SUBCASE("at a barrier") {
    waits.push_both();
    std::thread at_barrier([&] { second.barrier(); });
    const unsigned before = cluster.snapshot();
    CHECK(test::eventually([&] {
      pushes.push_both();
      pushes.value("a");
      return cluster.snapshot() >= before + 3;
    }));
    first.barrier();
    at_barrier.join();
  }
}

TEST_CASE("kvstore: pushes of a later program, with lower steps, are in the last snapshot") {
  for (const auto type : {KvstoreType::dist_sync, KvstoreType::dist_async}) {
    const test::TemporaryDirectory folder;
    Cluster cluster(type, folder);
    const auto program = [&](int pushes, bool only_a) {
      KVStore store(cluster.config_of("w1"));
      Counters counters(store);
      for (int i = 0; i < pushes; ++i) only_a ? counters.push_a() : counters.push_both();
      return std::pair(counters.value("a"), counters.value("b"));
    };
    CHECK(program(30, /*only_a=*/true) == std::pair(30.0, 0.0));
    CHECK(test::eventually([&] { return cluster.snapshot() > 0; }));
    CHECK(program(20, /*only_a=*/false) == std::pair(50.0, 20.0));
    cluster.stop();
    cluster.start_again(0);
    CHECK(program(0, true) == std::pair(50.0, 20.0));
  }
}

}  // namespace
}  // namespace dpwa
