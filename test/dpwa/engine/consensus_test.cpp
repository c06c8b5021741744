// How fast nodes that pull from one another agree: a recurrence of rounds, without time.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/engine/pull_engine.h"
#include "test/dpwa/engine/pull_driver.h"

using dpwa::Progress;
using dpwa::PullEngine;
using dpwa::Random;
using dpwa::TimePoint;

namespace {

constexpr std::size_t dimensions = 8;
using Vectors = std::vector<std::vector<double>>;

double variance(const Vectors& nodes) {
  double sum = 0;
  for (std::size_t d = 0; d < dimensions; ++d) {
    double mean = 0;
    for (const auto& node : nodes) mean += node[d] / static_cast<double>(nodes.size());
    for (const auto& node : nodes) sum += std::pow(node[d] - mean, 2);
  }
  return sum / static_cast<double>(nodes.size());
}

// The engines of n nodes that publish once a round.
struct Engines {
  Engines(std::size_t n, std::uint64_t seed) {
    const std::vector<std::string> peers(n - 1, "peer");
    dpwa::PullEngineOptions options;
    options.firewall.distance = dpwa::DistancePolicy::off;
    for (std::size_t i = 0; i < n; ++i) {
      options.seed = dpwa::derive_seed(seed, {i});
      nodes.emplace_back(options, peers);
    }
  }
  std::vector<PullEngine> nodes;
  Progress progress;  // of every node
};

// One synchronous round: every node pulls the snapshot that its peer had when the round began.
Vectors pull_round(const Vectors& before, Engines& engines, double factor) {
  const TimePoint now{};
  Vectors after = before;
  ++engines.progress.version;
  for (std::size_t i = 0; i < before.size(); ++i) {
    PullEngine& engine = engines.nodes[i];
    const auto arrival =
        dpwa::test::run_round(engine, {}, engines.progress, now,
                              [&](const PullEngine::Ask&) { return engines.progress; });
    const auto& peer = before[dpwa::test::node_of(i, *arrival.peer)];
    for (std::size_t d = 0; d < dimensions; ++d) {
      after[i][d] += factor * (peer[d] - before[i][d]);
    }
  }
  return after;
}

Vectors random_nodes(std::size_t n, Random& random) {
  Vectors nodes(n, std::vector<double>(dimensions));
  for (auto& node : nodes) {
    for (double& value : node) value = random.normal(0, 1);
  }
  return nodes;
}

// E[V'] / V over `runs` clusters of n nodes, each of three rounds.
double variance_per_round(std::size_t n, double factor, int runs) {
  double before = 0, after = 0;
  for (int run = 0; run < runs; ++run) {
    const auto seed = dpwa::derive_seed(42, {n, static_cast<std::uint64_t>(run)});
    Random random(seed);
    Engines engines(n, seed);
    Vectors nodes = random_nodes(n, random);
    double scale = 1;  // so that every round weighs the same in the sum
    for (int round = 0; round < 3; ++round) {
      scale = 1 / variance(nodes);
      nodes = pull_round(nodes, engines, factor);
      before += 1;
      after += variance(nodes) * scale;
    }
  }
  return after / before;
}

std::vector<double> mean_of(const Vectors& nodes) {
  std::vector<double> mean(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) {
    for (const auto& node : nodes) mean[d] += node[d] / static_cast<double>(nodes.size());
  }
  return mean;
}

// E||mean at consensus - mean at the start||^2 / E[V at the start], without gradients.
double drift(std::size_t n, double factor, int runs) {
  double moved = 0, before = 0;
  for (int run = 0; run < runs; ++run) {
    const auto seed = dpwa::derive_seed(43, {n, static_cast<std::uint64_t>(run)});
    Random random(seed);
    Engines engines(n, seed);
    Vectors nodes = random_nodes(n, random);
    const auto start = mean_of(nodes);
    before += variance(nodes);
    for (int round = 0; round < 40; ++round) nodes = pull_round(nodes, engines, factor);
    const auto end = mean_of(nodes);
    for (std::size_t d = 0; d < dimensions; ++d) moved += std::pow(end[d] - start[d], 2);
  }
  return moved / before;
}

double contraction(double n, double f) {
  return (1 - f) * (1 - f) + f * f - 2 * f * (1 - f) / (n - 1) -
         f * f * (n - 2) / ((n - 1) * (n - 1));
}

}  // namespace

TEST_CASE("pulls at one half shrink the consensus variance as theory says") {
  // Synchronous pull from a uniform peer: 1/2 - (3n - 4) / (4 (n - 1)^2).
  struct Expected {
    std::size_t nodes;
    double ratio;
  };
  for (const Expected expected : {Expected{4, 0.2778}, Expected{8, 0.3980}, Expected{16, 0.4511}}) {
    CAPTURE(expected.nodes);
    CHECK(variance_per_round(expected.nodes, 0.5, 1000) ==
          doctest::Approx(expected.ratio).epsilon(0.03));
  }
}

TEST_CASE("pulls at other factors shrink the consensus variance as theory says") {
  for (const double f : {0.25, 0.75}) {
    CAPTURE(f);
    CHECK(variance_per_round(8, f, 1000) == doctest::Approx(contraction(8, f)).epsilon(0.03));
  }
}

TEST_CASE("the mean drifts by as much as theory says until the nodes agree") {
  struct Expected {
    std::size_t nodes;
    double factor;
    double printed;  // in docs/ALGORITHMS.md; 0: not there
  };
  for (const Expected expected : {Expected{4, 0.5, 0.0769}, Expected{8, 0.5, 0.0508},
                                  Expected{16, 0.5, 0.0283}, Expected{8, 0.25, 0}}) {
    CAPTURE(expected.nodes);
    CAPTURE(expected.factor);
    const auto n = static_cast<double>(expected.nodes);
    const double f = expected.factor;
    const double theory = f * f / n * (1 - 1 / ((n - 1) * (n - 1))) / (1 - contraction(n, f));
    if (expected.printed > 0) CHECK(std::abs(theory - expected.printed) < 1e-4);
    CHECK(drift(expected.nodes, f, 2000) == doctest::Approx(theory).epsilon(0.03));
  }
}
