#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "test/dpwa/kvstore/virtual_store.h"
#include "test/support/sanitized.h"

// The end of a run: after its last step each worker waits until no worker trains, takes the final
// values and leaves.

namespace dpwa::kvstore {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::StoreOptions;
using testing::VirtualStore;

constexpr std::uint64_t steps = 30;

StoreOptions run_that_ends(KvstoreType type, std::size_t workers, std::uint64_t seed) {
  return {.type = type,
          .replicas = true,
          .servers = 2,
          .workers = workers,
          .seed = seed,
          .steps = steps,
          .finishes = true};
}

// Runs until the slowest worker, the last one, has made its last step.
void run_to_last_step(VirtualStore& store, std::size_t workers) {
  for (int looks = 0; looks < 1000 && store.clock(workers - 1) < steps; ++looks)
    store.run(milliseconds(10));
  REQUIRE(store.clock(workers - 1) == steps);
}

// Kills or freezes a server at this time after the last step of the last worker, whose steps are
// longer by this factor. Whether all workers got the final values.
bool all_finish(StoreOptions options, double slowness, bool is_killed, std::size_t server,
                int after_ms) {
  VirtualStore store(options);
  store.slow_down(options.workers - 1, slowness);
  run_to_last_step(store, options.workers);
  store.run(milliseconds(after_ms));
  if (is_killed) {
    store.kill_server(server);
  } else {
    store.freeze("s" + std::to_string(server));
  }
  store.run(seconds(6));
  CHECK(store.failures().empty());
  for (std::size_t worker = 0; worker < options.workers; ++worker) {
    if (!store.has_finished(worker)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("workers that finish take the final values once the slowest one has made its last step") {
  for (const KvstoreType type : {KvstoreType::dist_sync, KvstoreType::dist_async}) {
    for (std::size_t workers = 1; workers <= 4; ++workers) {
      CAPTURE(type);
      CAPTURE(workers);
      VirtualStore store(run_that_ends(type, workers, workers));
      store.slow_down(workers - 1, 8);
      run_to_last_step(store, workers);
      for (std::size_t worker = 0; worker < workers; ++worker) CHECK(!store.has_finished(worker));
      store.run(seconds(2));
      for (std::size_t worker = 0; worker < workers; ++worker) CHECK(store.has_finished(worker));
      CHECK(store.server(0).epoch().workers.empty());
      CHECK(store.server(0).epoch().left.size() == workers);
      CHECK(store.problem() == "");
    }
  }
}

// With two servers the first one alone is half of the members when no worker takes part.
TEST_CASE("either of two servers may die or freeze at any moment of the end") {
  for (const KvstoreType type : {KvstoreType::dist_sync, KvstoreType::dist_async}) {
    for (std::size_t workers = 1; workers <= 3; ++workers) {
      for (int after = 0; after < 300; after += test::sanitized ? 50 : 10) {
        CAPTURE(type);
        CAPTURE(workers);
        CAPTURE(after);
        const StoreOptions options =
            run_that_ends(type, workers, static_cast<std::uint64_t>(after) + workers);
        for (const bool is_killed : {false, true}) {
          CHECK(all_finish(options, 1.1, is_killed, 0, after));
          CHECK(all_finish(options, 4.0, is_killed, 0, after));
          CHECK(all_finish(options, 1.1, is_killed, 1, after));
        }
      }
    }
  }
}

// Many may wait for one.
TEST_CASE("the last worker that trains may die, alone or together with a server") {
  for (const KvstoreType type : {KvstoreType::dist_sync, KvstoreType::dist_async}) {
    for (const std::optional<std::size_t> killed : {std::optional<std::size_t>(), {0}, {1}}) {
      CAPTURE(type);
      CAPTURE(killed.value_or(2));
      VirtualStore store(run_that_ends(type, 3, 1));
      store.slow_down(2, 8);
      store.run(seconds(1));
      REQUIRE(store.clock(2) < steps);
      store.kill_worker(2);
      store.run(milliseconds(300));
      if (killed) store.kill_server(*killed);
      store.run(seconds(6));
      for (const std::size_t worker : {0, 1}) CHECK(store.has_finished(worker));
    }
  }
}

TEST_CASE("workers that wait at their end hear that all servers were started again") {
  VirtualStore store(run_that_ends(KvstoreType::dist_async, 2, 1));
  store.slow_down(1, 8);
  store.run(seconds(1));
  for (const std::size_t server : {0, 1}) {
    store.kill_server(server);
    store.start_server(server);
  }
  store.run(seconds(5));
  for (const std::size_t worker : {2, 3}) CHECK_FALSE(store.world().runs(worker));
}

}  // namespace dpwa::kvstore
