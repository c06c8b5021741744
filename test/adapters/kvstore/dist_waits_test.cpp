#include <torch/types.h>

#include <chrono>
#include <string>

#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/kvstore/store_cluster.h"
#include "test/support/eventually.h"
#include "test/support/log_file.h"

// What the log says of workers that wait, and of those that end.

namespace dpwa {
namespace {

using test::StoreCluster;

constexpr auto patience = std::chrono::seconds(60);

TEST_CASE("kvstore dist: a call that waits says in the log for what, and who takes part") {
  const test::LogFile log;
  const StoreCluster cluster(4, KvstoreType::dist_sync);
  cluster.run(4, [&](std::size_t index, KVStore& store) {
    auto w = torch::zeros({2});
    store.init("w", w);
    if (index == 3) {
      for (const std::string call :
           {"the pull of key 'w' before its step 1",
            "the init of key 'v': the value of the first worker, and the next step of the others",
            "barrier number 1"}) {
        CAPTURE(call);
        CHECK(test::eventually(
            [&] { return log.has("waiting for " + call + "; workers that take part: w"); },
            patience));
      }
    }
    store.push("w", torch::ones({2}));
    if (index == 0) store.pull("w", w);  // waits for the push of the fourth worker
    if (index < 2) store.init("v", w);   // the second worker waits for the first one
    store.barrier();
  });
}

TEST_CASE("kvstore dist: a worker that starts before its servers says soon whom it waits for") {
  const test::LogFile log;
  StoreCluster cluster(1, KvstoreType::dist_sync, 1,
                       [](KvstoreConfig& store) { store.start_wait = patience; });
  cluster.servers[0].reset();
  test::at_once(2, [&](std::size_t part) {
    if (part == 0) {
      cluster.run(1, [](std::size_t, KVStore&) {});
      return;
    }
    CHECK(test::eventually(
        [&] {
          return log.has("waiting for the servers to admit this worker, for ") &&
                 log.has(" s so far and 60 s at most; ");
        },
        patience));
    cluster.start_again(0);
  });
}

TEST_CASE("kvstore dist: a worker whose program ends has left, and is not left out") {
  const test::LogFile log;
  const StoreCluster cluster(2, KvstoreType::dist_sync);
  cluster.run(2, [&](std::size_t index, KVStore& store) {
    store.init("w", torch::zeros({2}));
    store.push("w", torch::ones({2}));
    store.barrier();
    if (index == 1) return;
    CHECK(test::eventually([&] { return store.num_workers() == 1; }, patience));
    CHECK(log.has("worker 'w2' has left"));
    CHECK_FALSE(log.has("worker 'w2' was left out"));
  });
}

}  // namespace
}  // namespace dpwa
