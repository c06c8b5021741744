#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "test/dpwa/kvstore/virtual_store.h"

namespace dpwa::kvstore::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

StoreOptions random_history(std::uint64_t seed) {
  StoreOptions options;
  options.servers = 1 + seed % 3;
  options.workers = 2 + seed % 3;
  options.replicas = seed % 2 == 0;
  options.seed = seed;
  options.optimizer = OptimizerKind::momentum;  // the order of the updates is in the values
  options.loss = 0.03;
  options.doubled = 0.05;
  options.overtaking = 0.05;
  return options;
}

// The values at several moments.
std::vector<std::vector<double>> course_of(StoreOptions options, KvstoreType type,
                                           std::uint64_t staleness) {
  options.type = type;
  options.staleness = staleness;
  VirtualStore store(options);
  std::vector<std::vector<double>> course;
  for (int second = 0; second < 3; ++second) {
    store.run(seconds(1));
    if (second == 1) store.kill_worker(0);
    for (std::uint64_t key = 0; key < options.keys; ++key) course.push_back(store.values(key));
  }
  return course;
}

TEST_CASE("dist_ssp with staleness 0 is dist_sync, in the same histories, bit for bit") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const auto sync = course_of(random_history(seed), KvstoreType::dist_sync, 0);
    CHECK(course_of(random_history(seed), KvstoreType::dist_ssp, 0) == sync);
    CHECK(course_of(random_history(seed), KvstoreType::dist_ssp, 1) != sync);
  }
}

TEST_CASE("dist_ssp without a bound, or one that is never reached, is dist_async, bit for bit") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const auto options = random_history(seed);
    const auto async = course_of(options, KvstoreType::dist_async, 0);
    CHECK(course_of(options, KvstoreType::dist_ssp, unbounded_staleness) == async);
    CHECK(course_of(options, KvstoreType::dist_ssp, 1'000'000) == async);
    CHECK(course_of(options, KvstoreType::dist_ssp, 1) != async);
  }
}

TEST_CASE("a worker is ahead of the slowest by the staleness, and by no more") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const std::uint64_t staleness : {0, 1, 2, 5}) {
      CAPTURE(seed);
      CAPTURE(staleness);
      VirtualStore store({.type = KvstoreType::dist_ssp,
                          .staleness = staleness,
                          .servers = 2,
                          .seed = seed,
                          .loss = 0.02,
                          .overtaking = 0.05});
      store.slow_down(2, 5);
      store.run(seconds(5));
      CHECK(store.problem() == "");
      CHECK(store.largest_lead() == staleness);
      CHECK(store.times_left_out(2) == 0);
    }
  }
  VirtualStore store({.type = KvstoreType::dist_async});
  store.slow_down(2, 5);
  store.run(seconds(5));
  CHECK(store.largest_lead() > 50);
}

// One worker at a time moves a row, so each row has the course of one worker's gradients under
// torch's SGD with momentum 0.9 and learning rate 1.
TEST_CASE("dist_sync, and dist_async with one worker, are the optimizer over the steps in order") {
  for (const auto type : {KvstoreType::dist_sync, KvstoreType::dist_async}) {
    const std::size_t workers = type == KvstoreType::dist_sync ? 3 : 1;
    VirtualStore store({.type = type,
                        .servers = 2,
                        .workers = workers,
                        .optimizer = OptimizerKind::momentum,
                        .loss = 0.05,
                        .doubled = 0.1,
                        .overtaking = 0.05,
                        .steps = 40});
    store.run(seconds(30));
    double velocity = 0;
    double expected = 0;
    for (int step = 0; step < 40; ++step) {
      velocity = 0.9 * velocity - 1;
      expected -= velocity;
    }
    for (std::uint64_t key = 0; key < 4; ++key) {
      const auto values = store.values(key);
      REQUIRE(values.size() == VirtualStore::elements);
      for (std::size_t worker = 0; worker < workers; ++worker) {
        CHECK(store.clock(worker) == 40);
        CHECK(values[worker * VirtualStore::row_words] == doctest::Approx(expected).epsilon(1e-12));
      }
    }
  }
}

}  // namespace
}  // namespace dpwa::kvstore::testing
