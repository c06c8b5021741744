#include <doctest/doctest.h>

#include <cmath>

#include "dpwa/base/random.h"
#include "test/support/vector_cluster.h"

// Real nodes over real sockets and through their memory, in lock step, with encoded pulls.
// docs/ENCODINGS.md.

namespace dpwa {
namespace {

constexpr std::size_t nodes = 4;
constexpr std::size_t elements = 4096;

class EncodedCluster {
 public:
  EncodedCluster(Codec codec, bool same_host)
      : cluster_(nodes, elements, [codec, same_host](Config& config) {
          config.gossip.step_budget = config.gossip.timeout;
          config.gossip.ledger = false;  // every step blends
          // Two nodes that meet twice in a row without updates differ by rounding alone. The
          // firewall would take that for the usual distance and clip all others.
          config.gossip.firewall.distance = DistancePolicy::warn;
          config.transport.encoding = codec;
          config.transport.same_host = same_host;
        }) {
    cluster_.start();
  }

  std::span<float> values(std::size_t node) { return cluster_.at(node).values(); }

  // One step of all: publish, `update` every value, blend.
  void step(float update) {
    for (std::size_t i = 0; i < nodes; ++i) cluster_.at(i).gossip().publish([] { return 1.0; });
    for (std::size_t i = 0; i < nodes; ++i) cluster_.at(i).gossip().begin_pull();
    for (std::size_t i = 0; i < nodes; ++i) {
      for (float& value : values(i)) value -= update;
      const StepReport report = cluster_.at(i).gossip().update_wait();
      REQUIRE(report.outcome == Outcome::mixed);
      bytes_ = report.bytes;
    }
  }

  double mean() {
    double sum = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      for (const float value : values(i)) sum += value;
    }
    return sum / (nodes * elements);
  }
  // Root mean square of x_i - mean over nodes and elements.
  double disagreement() {
    double sum = 0;
    for (std::size_t e = 0; e < elements; ++e) {
      double mean = 0;
      for (std::size_t i = 0; i < nodes; ++i) mean += values(i)[e] / nodes;
      for (std::size_t i = 0; i < nodes; ++i) sum += std::pow(values(i)[e] - mean, 2);
    }
    return std::sqrt(sum / (nodes * elements));
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  test::VectorCluster cluster_;
  std::uint64_t bytes_ = 0;
};

struct Bound {
  Codec codec;
  double disagreement;  // of weights of deviation 1
  std::uint64_t bytes;
};
constexpr Bound kBounds[] = {{Codec::raw, 1e-6, 4 * elements},
                             {Codec::fp16, 3e-4, 2 * elements},
                             {Codec::bf16, 3e-3, 2 * elements},
                             {Codec::int8, 2e-2, elements + elements / 16}};

}  // namespace

TEST_CASE("without gradients nodes come as close to each other as their encoding allows") {
  bool same_host = false;
  SUBCASE("over TCP") {}
  SUBCASE("through memory") {
    same_host = true;
  }
  for (const Bound& bound : kBounds) {
    CAPTURE(name_of(bound.codec));
    EncodedCluster cluster(bound.codec, same_host);
    Random random(3);
    for (std::size_t i = 0; i < nodes; ++i) {
      for (float& value : cluster.values(i)) value = static_cast<float>(random.normal(0, 1));
    }
    for (int step = 0; step < 60; ++step) cluster.step(0);
    CHECK(cluster.disagreement() < bound.disagreement);
    CHECK((bound.codec == Codec::raw || cluster.disagreement() > bound.disagreement / 30));
    CHECK(cluster.bytes() == bound.bytes);
  }
}

TEST_CASE("updates far below the unit of the encoding move the mean at the full learning rate") {
  constexpr float update = 0x1p-14;  // bf16 near 1 has units of 2^-7, int8 of 2^-5
  constexpr int steps = 256;
  bool same_host = false;
  SUBCASE("over TCP") {}
  SUBCASE("through memory") {
    same_host = true;
  }
  for (const Bound& bound : kBounds) {
    CAPTURE(name_of(bound.codec));
    EncodedCluster cluster(bound.codec, same_host);
    Random random(4);
    for (std::size_t e = 0; e < elements; ++e) {
      const double middle = random.normal(0, 1);
      for (std::size_t i = 0; i < nodes; ++i)
        cluster.values(i)[e] = static_cast<float>(middle + random.normal(0, 1e-3));
    }
    const double before = cluster.mean();
    for (int step = 0; step < steps; ++step) cluster.step(update);
    CHECK((before - cluster.mean()) / (steps * update) == doctest::Approx(1.0).epsilon(0.05));
  }
}

}  // namespace dpwa
