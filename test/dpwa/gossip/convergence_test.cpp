#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>

#include "dpwa/base/random.h"
#include "dpwa/gossip/gossip_node.h"
#include "test/dpwa/net/one_peer.h"
#include "test/support/eventually.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

// V = (1/n) sum ||x_i - mean||^2.
double consensus_variance(test::VectorCluster& cluster) {
  const std::size_t elements = cluster.at(0).values().size();
  double variance = 0;
  for (std::size_t e = 0; e < elements; ++e) {
    double mean = 0;
    for (std::size_t i = 0; i < cluster.size(); ++i) mean += cluster.at(i).values()[e];
    mean /= static_cast<double>(cluster.size());
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      const double difference = cluster.at(i).values()[e] - mean;
      variance += difference * difference;
    }
  }
  return variance / static_cast<double>(cluster.size());
}

// E[V'] / V of synchronous pulls at f = 1/2 between real nodes over real sockets: every node
// publishes, every node pulls from its own random choice, every node blends.
double measured_contraction(std::size_t nodes, int rounds) {
  constexpr std::size_t elements = 64;
  test::VectorCluster cluster(nodes, elements, [](Config& config) {
    config.gossip.step_budget = config.gossip.timeout;
    // A round that the machine held up would make snapshots that are not fresh.
    config.gossip.ledger = false;
  });
  cluster.start();
  Random random(17);
  double before = 0;
  double after = 0;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < nodes; ++i) {
      for (float& value : cluster.at(i).values()) value = static_cast<float>(random.normal(0, 1));
    }
    before += consensus_variance(cluster);
    for (std::size_t i = 0; i < nodes; ++i) cluster.at(i).gossip().publish([] { return 1.0; });
    for (std::size_t i = 0; i < nodes; ++i) cluster.at(i).gossip().begin_pull();
    for (std::size_t i = 0; i < nodes; ++i) {
      const StepReport report = cluster.at(i).gossip().update_wait();
      REQUIRE(report.outcome == Outcome::mixed);
    }
    after += consensus_variance(cluster);
  }
  return after / before;
}

// docs/ALGORITHMS: 1/2 - (3n - 4) / (4 (n - 1)^2).
double expected_contraction(double n) {
  return 0.5 - (3 * n - 4) / (4 * (n - 1) * (n - 1));
}

}  // namespace

TEST_CASE(
    "8 real nodes contract the consensus variance per round as the theory of random pulls says") {
  CHECK(measured_contraction(8, 250) == doctest::Approx(expected_contraction(8)).epsilon(0.10));
}

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
    config.gossip.ledger = false;  // which would pass a peer over now and then
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

// The pair ledger between real nodes. Over TCP and from memory, a pull states what was taken.

namespace dpwa {
namespace {

struct Blends {
  int first = 0, second = 0;
};

// Of two nodes that step by turns; the second one pulls too, or only publishes.
Blends blends_of(bool second_pulls, const std::function<void(Config&)>& tune) {
  test::VectorCluster cluster(2, 8, [&](Config& config) {
    config.gossip.step_budget = config.gossip.timeout;
    tune(config);
  });
  cluster.start();
  Blends blends;
  for (int step = 0; step < 60; ++step) {
    for (const std::size_t node : {0, 1}) {
      Gossip& gossip = cluster.at(node).gossip();
      gossip.publish([] { return 1.0; });
      if (node == 1 && !second_pulls) continue;
      gossip.begin_pull();
      const bool mixed = gossip.update_wait().outcome == Outcome::mixed;
      (node == 0 ? blends.first : blends.second) += mixed ? 1 : 0;
    }
  }
  return blends;
}

}  // namespace

TEST_CASE("two nodes that take from each other go on, over TCP and from memory") {
  for (const bool same_host : {false, true}) {
    CAPTURE(same_host);
    const Blends blends =
        blends_of(true, [&](Config& config) { config.transport.same_host = same_host; });
    CHECK(blends.first > 50);
    CHECK(blends.second > 50);
  }
}

TEST_CASE("from a node that does not take, six pulls at most are blended") {
  for (const bool same_host : {false, true}) {
    CAPTURE(same_host);
    const Blends blends =
        blends_of(false, [&](Config& config) { config.transport.same_host = same_host; });
    CHECK(blends.first >= 3);
    CHECK(blends.first <= 6);
  }
}

TEST_CASE("a pull states what was taken only to a peer that keeps the ledger too") {
  std::uint32_t capabilities = test::sound_hello().capabilities;
  bool expected = false;
  SUBCASE("the peer keeps it") {
    capabilities |= wire::ledger_capability;
    expected = true;
  }
  SUBCASE("the peer is of a release without it") {}
  std::atomic<int> stated{-1};
  test::OnePeer pair(
      [&](test::RawSocket& socket, const test::PullSeen& request) {
        stated = request.pull.taken.has_value() ? 1 : 0;
        socket.send(test::sound_reply(request));
      },
      test::patience, {}, capabilities);
  CHECK(pair.step().outcome == Outcome::mixed);
  CHECK(stated == static_cast<int>(expected));
}

TEST_CASE("a node that stands still gives no snapshot, over TCP and from memory") {
  for (const bool same_host : {false, true}) {
    CAPTURE(same_host);
    test::VectorCluster cluster(2, 8, [&](Config& config) {
      config.gossip.timeout = test::patience;
      config.transport.same_host = same_host;
    });
    cluster.start();
    Gossip& still = cluster.at(1).gossip();
    for (int step = 0; step < 20; ++step) {
      still.update_send([] { return 1.0; });
      still.update_wait();
    }
    // For longer than its steps took.
    const auto& fresh_until = still.node().local().fresh_until;
    REQUIRE(
        test::eventually([&] { return std::chrono::steady_clock::now() > fresh_until.load(); }));
    const auto blends = [&] {
      Gossip& gossip = cluster.at(0).gossip();
      gossip.publish([] { return 1.0; });
      gossip.begin_pull();
      std::optional<Outcome> outcome;
      test::eventually([&] {
        const StepReport report = gossip.update_wait();
        if (report.outcome != Outcome::pending) outcome = report.outcome;
        return outcome.has_value();
      });
      return outcome == Outcome::mixed;
    };
    for (int round = 0; round < 50; ++round) CHECK_FALSE(blends());
    CHECK(blends());  // rather old than none
  }
}

TEST_CASE("without the ledger a node blends whatever it gets") {
  const Blends all = blends_of(false, [](Config& config) { config.gossip.ledger = false; });
  CHECK(all.first > 55);
  const Blends lerp =
      blends_of(false, [](Config& config) { config.gossip.blend = BlendMode::lerp; });
  CHECK(lerp.first > 55);
  const Blends loss =
      blends_of(false, [](Config& config) { config.interpolation.method = "clock"; });
  CHECK(loss.first > 55);
}

}  // namespace dpwa
