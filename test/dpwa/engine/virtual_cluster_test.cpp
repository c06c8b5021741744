#include "test/dpwa/engine/virtual_cluster.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace std::chrono_literals;
using dpwa::Outcome;
using dpwa::testing::Attempt;
using dpwa::testing::ClusterOptions;
using dpwa::testing::RoundRecord;
using dpwa::testing::VirtualCluster;

TEST_CASE("without faults every node asks all others equally often and blends every round") {
  VirtualCluster cluster(ClusterOptions{});
  const std::size_t n = cluster.size();
  cluster.run(40s);  // about 2000 steps of each of the 48 nodes

  std::vector<std::vector<double>> picks(n, std::vector<double>(n));
  for (const Attempt& attempt : cluster.attempts()) ++picks[attempt.node][attempt.peer];
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(picks[i][i] == 0);
    double sum = 0;
    for (const double count : picks[i]) sum += count;
    CHECK(sum > 1900);
    const double expected = sum / static_cast<double>(n - 1);
    double chi_square = 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (j != i) chi_square += std::pow(picks[i][j] - expected, 2) / expected;
    }
    CHECK(chi_square < 46 + 5 * std::sqrt(2 * 46));  // 46 degrees of freedom, 5 deviations
    total += chi_square;
  }
  CHECK(std::abs(total - 48 * 46) < 5 * std::sqrt(2 * 48 * 46));

  for (const RoundRecord& round : cluster.rounds()) {
    REQUIRE(round.outcome == Outcome::mixed);
    REQUIRE(round.attempts - round.unchanged == 1);  // one peer that had something new
  }
}

TEST_CASE("without faults every vector converges to one consensus") {
  VirtualCluster cluster(ClusterOptions{});
  const double before = cluster.consensus_variance();
  CHECK(before > 1);
  cluster.run(2s);  // about 100 rounds, each of which shrinks the variance by about .6
  CHECK(cluster.consensus_variance() < before * 1e-9);
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    for (const double value : cluster.parameters(i)) CHECK(std::abs(value) < 2);
  }
}

TEST_CASE("clocks stay together although steps differ") {
  VirtualCluster cluster(ClusterOptions{});
  cluster.run(10s);
  const double first = cluster.progress(0).clock;
  // Less than the 500 steps: blends average in clocks of a step ago.
  CHECK(first > 100);
  CHECK(first <= 520);
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    CHECK(std::abs(cluster.progress(i).clock - first) < 5);
  }
}

TEST_CASE("the same seed gives the same run, another seed another one") {
  const auto run = [](std::uint64_t seed) {
    ClusterOptions options;
    options.nodes = 12;
    options.seed = seed;
    auto cluster = std::make_unique<VirtualCluster>(options);
    cluster->run(1s);
    cluster->set(3, dpwa::testing::Behaviour::silent);
    cluster->set(4, dpwa::testing::Behaviour::down);
    cluster->run(2s);
    cluster->set(3, dpwa::testing::Behaviour::serving);
    cluster->restart(4);
    cluster->run(2s);
    return cluster;
  };
  const auto a = run(1), b = run(1), c = run(2);
  CHECK(a->attempts().size() > 1000);
  CHECK(a->attempts() == b->attempts());
  CHECK(a->rounds() == b->rounds());
  for (std::size_t i = 0; i < a->size(); ++i) CHECK(a->parameters(i) == b->parameters(i));
  CHECK(a->attempts() != c->attempts());
}
