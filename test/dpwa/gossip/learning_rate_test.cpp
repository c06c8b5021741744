#include <doctest/doctest.h>

#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

// The speed of the mean under a gradient that is the same everywhere and constant, as a fraction of
// the nominal learning rate. Real nodes over real sockets, in the order of a synchronous step:
// publish and begin the pull, optimizer step, blend. Every `pull_every`-th step pulls, so p = 1 /
// pull_every.
double effective_learning_rate(BlendMode blend, double factor, int pull_every) {
  constexpr std::size_t nodes = 4;
  constexpr int steps = 400;
  constexpr float update = 1.0F / 1024;  // learning rate times gradient
  test::VectorCluster cluster(nodes, 8, [&](Config& config) {
    config.gossip.step_budget = config.gossip.timeout;
    config.gossip.blend = blend;
    config.interpolation.parameters["value"] = factor;
  });
  cluster.start();
  for (int step = 0; step < steps; ++step) {
    const bool pull = step % pull_every == 0;
    for (std::size_t i = 0; i < nodes; ++i) cluster.at(i).gossip().publish([] { return 1.0; });
    for (std::size_t i = 0; i < nodes && pull; ++i) cluster.at(i).gossip().begin_pull();
    for (std::size_t i = 0; i < nodes; ++i) {
      for (float& value : cluster.at(i).values()) value -= update;
      const StepReport report = cluster.at(i).gossip().update_wait();
      REQUIRE(report.outcome == (pull ? Outcome::mixed : Outcome::skipped));
    }
  }
  double travelled = 0;
  for (std::size_t i = 0; i < nodes; ++i) travelled -= cluster.at(i).values()[0];
  return travelled / nodes / (steps * update);
}

}  // namespace

TEST_CASE("the delta blend keeps the effective learning rate at 1") {
  CHECK(effective_learning_rate(BlendMode::delta, 0.5, 1) == doctest::Approx(1.0).epsilon(0.01));
  CHECK(effective_learning_rate(BlendMode::delta, 0.9, 1) == doctest::Approx(1.0).epsilon(0.01));
}

TEST_CASE("the lerp blend of the original shrinks the effective learning rate to 1 - p f") {
  CHECK(effective_learning_rate(BlendMode::lerp, 0.5, 1) == doctest::Approx(0.5).epsilon(0.01));
  CHECK(effective_learning_rate(BlendMode::lerp, 0.25, 1) == doctest::Approx(0.75).epsilon(0.01));
  CHECK(effective_learning_rate(BlendMode::lerp, 0.5, 2) == doctest::Approx(0.75).epsilon(0.01));
}

}  // namespace dpwa
