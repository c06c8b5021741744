#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "test/support/allocations.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using namespace std::chrono_literals;

struct Counts {
  int blends = 0;
  std::uint64_t allocations = 0;
};

// What the trainer of a node takes from the heap in `steps` steps, after some to warm up, with a
// peer that publishes as often.
Counts allocations_of(test::VectorCluster& cluster, int steps, bool pulls) {
  Counts counts;
  for (int step = -20; step < steps; ++step) {
    cluster.at(1).gossip().publish([] { return 2.0; });
    if (pulls) {
      cluster.at(1).gossip().begin_pull();
      cluster.at(1).gossip().update_wait();
    }
    const double loss = 1.0 + step;
    const auto before = test::allocations();
    cluster.at(0).gossip().update_send([loss] { return loss; });
    const StepReport report = cluster.at(0).gossip().update_wait();
    const auto after = test::allocations();
    if (report.outcome == Outcome::pending) std::this_thread::sleep_for(100us);
    if (step < 0) continue;
    counts.allocations += after - before;
    counts.blends += report.outcome == Outcome::mixed;
  }
  return counts;
}

// The control block of the snapshot's shared_ptr.
constexpr std::uint64_t per_publish = 1;

}  // namespace

TEST_CASE("a step that waits for its pull allocates once for its publish and for nothing else") {
  test::VectorCluster cluster(
      2, 16 * 200, [](Config& config) { config.gossip.step_budget = config.gossip.timeout; }, 200);
  cluster.start();
  const Counts counts = allocations_of(cluster, 100, /*pulls=*/true);
  CHECK(counts.blends >= 95);  // the ledger passes the peer over now and then
  CHECK(counts.allocations == 100 * per_publish);
}

TEST_CASE("a step that blends a late pull allocates once for its publish and for nothing else") {
  test::VectorCluster cluster(
      2, 16 * 200, [](Config& config) { config.gossip.ledger = false; }, 200);
  cluster.start();
  const Counts counts = allocations_of(cluster, 400, /*pulls=*/false);
  CHECK(counts.blends > 10);
  CHECK(counts.allocations == 400 * per_publish);
}

}  // namespace dpwa
