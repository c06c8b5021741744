#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/net/free_ports.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using test::VectorCluster;
using test::VectorNode;
using namespace std::chrono_literals;

constexpr std::size_t elements = 64;

double norm_to(VectorNode& node, float to) {
  double sum = 0;
  for (const float value : node.values()) sum += std::pow(value - to, 2);
  return std::sqrt(sum);
}

StepReport step_with_pull(VectorNode& node) {
  node.gossip().publish([] { return 1.0; });
  node.gossip().begin_pull();
  return node.gossip().update_wait();
}

// Real nodes over real sockets, of which the last one lies. Their judgement of each other goes by a
// clock that each round moves on, however busy the machine is.
class LyingCluster {
 public:
  LyingCluster(std::size_t honest, DistancePolicy policy, bool same_host)
      : honest_(honest),
        cluster_(
            honest + 1, elements,
            [&](Config& config) {
              config.gossip.step_budget = config.gossip.timeout;
              config.gossip.seed = 1;
              config.gossip.ledger = false;  // which bounds what a liar can do, too
              config.gossip.firewall.distance = policy;
              config.transport.same_host = same_host;
            },
            1, [this] { return TimePoint(Duration(time_.load())); }) {
    cluster_.start();
  }

  // Everybody trains towards 1, publishes, pulls and blends; the liar sends `lie` everywhere.
  void run(int rounds, float lie) {
    for (int round = 0; round < rounds; ++round) {
      time_ += Duration(100ms).count();
      for (std::size_t i = 0; i < honest_; ++i) {
        for (float& value : cluster_.at(i).values())
          value += 0.1F * (1 - value) + static_cast<float>(random_.normal(0, 0.05));
      }
      std::ranges::fill(liar().values(), lie);
      for (std::size_t i = 0; i <= honest_; ++i)
        cluster_.at(i).gossip().publish([] { return 1.0; });
      for (std::size_t i = 0; i < honest_; ++i) cluster_.at(i).gossip().begin_pull();
      for (std::size_t i = 0; i < honest_; ++i) {
        const StepReport report = cluster_.at(i).gossip().update_wait();
        clipped_ += report.clipped ? 1 : 0;
        refused_ += report.refused;
      }
    }
  }

  double error() {
    double worst = 0;
    for (std::size_t i = 0; i < honest_; ++i)
      worst = std::max(worst, norm_to(cluster_.at(i), 1.0F));
    return worst;
  }
  VectorNode& liar() { return cluster_.at(honest_); }
  VectorCluster& cluster() { return cluster_; }
  int clipped() const { return clipped_; }
  unsigned refused() const { return refused_; }

 private:
  const std::size_t honest_;
  std::atomic<Duration::rep> time_{Duration(1h).count()};
  VectorCluster cluster_;
  Random random_{3};
  int clipped_ = 0;
  unsigned refused_ = 0;
};

// A node whose only peer was at a distance of 8 as often as a bound needs, and then is far away.
struct FarPeer {
  explicit FarPeer(const std::function<void(Config&)>& tune, std::size_t tensors = 1)
      : cluster(
            2, elements,
            [&](Config& config) {
              config.gossip.step_budget = config.gossip.timeout;
              config.gossip.ledger = false;  // the far peer pulls nothing
              tune(config);
            },
            tensors) {
    cluster.start();
  }

  StepReport step_at(float peer_value) {
    std::ranges::fill(cluster.at(0).values(), 0.0F);
    std::ranges::fill(cluster.at(1).values(), peer_value);
    cluster.at(1).gossip().publish([] { return 1.0; });
    return step_with_pull(cluster.at(0));
  }

  VectorCluster cluster;
};

}  // namespace

// The policies are compared in test/dpwa/engine/byzantine_test.cpp.
TEST_CASE("among real nodes a liar of a hundred times is stopped by clip and refuse") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    const bool clips = policy == DistancePolicy::clip;
    LyingCluster nodes(4, policy, /*same_host=*/clips);
    nodes.run(40, 1);
    const double before = nodes.error();
    nodes.run(60, 100);
    CHECK(nodes.error() < 5 * before + 1);
    CHECK(nodes.refused() > 0);
    if (!clips) CHECK(nodes.clipped() == 0);
  }
}

TEST_CASE("the final average of honest nodes leaves a liar out, and is the same on all of them") {
  LyingCluster nodes(3, DistancePolicy::refuse, true);
  nodes.run(40, 1);
  std::ranges::fill(nodes.liar().values(), 1e6F);
  nodes.cluster().for_all_at_once([&](VectorNode& node) {
    const FinishReport report = node.gossip().finish();
    if (&node == &nodes.liar()) return;
    CHECK(report.participants == 3);
  });
  CHECK(nodes.error() < 2);
  for (std::size_t i = 1; i < 3; ++i)
    CHECK(std::ranges::equal(nodes.cluster().at(i).values(), nodes.cluster().at(0).values()));
}

TEST_CASE("a joiner passes over a peer that offers NaN as its weights, though it is the furthest") {
  const auto ports = net::free_ports(3);
  const auto config_of = [&](std::size_t index) {
    Config config = test::loopback_config(ports, index);
    config.gossip.start_wait = std::chrono::milliseconds(index < 2 ? 50 : 20000);
    return config;
  };
  VectorNode broken(config_of(0), elements);
  VectorNode sound(config_of(1), elements);
  broken.gossip().start();
  sound.gossip().start();
  broken.values()[7] = std::numeric_limits<float>::quiet_NaN();
  sound.values()[7] = 7;
  for (int i = 0; i < 9; ++i) broken.gossip().publish([] { return 1.0; });
  sound.gossip().publish([] { return 1.0; });

  VectorNode joiner(config_of(2), elements);
  joiner.gossip().start();
  CHECK(joiner.values()[7] == 7);
  CHECK(joiner.gossip().resume_state().clock == 1);
}

TEST_CASE("with clip a joiner leaves weights alone that are far from most others'") {
  for (const auto policy : {DistancePolicy::warn, DistancePolicy::clip}) {
    for (const unsigned blocks : {1U, 2U}) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(blocks);
      const auto ports = net::free_ports(4);
      std::vector<std::unique_ptr<VectorNode>> nodes;
      const auto start = [&](std::size_t index, std::chrono::milliseconds wait) -> VectorNode& {
        Config config = test::loopback_config(ports, index);
        config.gossip.start_wait = wait;
        config.gossip.step_budget = config.gossip.timeout;
        config.gossip.blocks = blocks;
        config.gossip.firewall.distance = policy;
        nodes.push_back(std::make_unique<VectorNode>(config, elements, 0.0F, 2));
        nodes.back()->gossip().start();
        return *nodes.back();
      };
      for (std::size_t index = 0; index < 3; ++index) start(index, 50ms);
      for (std::size_t index = 0; index < 3; ++index) {
        VectorNode& node = *nodes[index];
        std::ranges::fill(node.values(),
                          index == 0 ? 100.0F : 1 + 0.1F * static_cast<float>(index));
        // The liar is the one that is ahead.
        for (int i = 0; i < (index == 0 ? 9 : 5); ++i) node.gossip().publish([] { return 1.0; });
      }
      VectorNode& joiner = start(3, 20s);
      const bool fooled = policy == DistancePolicy::warn;
      CHECK(joiner.values()[0] == doctest::Approx(fooled ? 100 : 1.15).epsilon(0.05));
      if (fooled) continue;
      // And it knows from the start what is usual.
      for (int i = 0; i < 6; ++i) {
        nodes[0]->gossip().publish([] { return 1.0; });
        step_with_pull(joiner);
        CHECK(joiner.values()[0] < 5);  // with clip each lie moves it by the bound
      }
    }
  }
}

TEST_CASE("a refused snapshot leaves every bit of the model and the clock's pace alone") {
  FarPeer nodes([](Config& config) { config.gossip.firewall.distance = DistancePolicy::refuse; });
  for (int i = 0; i < 8; ++i) REQUIRE(nodes.step_at(1).outcome == Outcome::mixed);
  const double clock = nodes.cluster.at(0).gossip().resume_state().clock;
  for (int i = 0; i < 20; ++i) nodes.cluster.at(1).gossip().publish([] { return 1.0; });
  const StepReport report = nodes.step_at(2.1F);
  CHECK(report.outcome == Outcome::rejected);
  CHECK(report.refused == 1);
  CHECK_FALSE(report.clipped);
  CHECK(std::ranges::count(nodes.cluster.at(0).values(), 0.0F) == elements);
  CHECK(report.clock == clock + 1);
}

TEST_CASE("a clipped snapshot moves the whole model by the bound's share, in either blend") {
  for (const BlendMode blend : {BlendMode::delta, BlendMode::lerp}) {
    FarPeer nodes([blend](Config& config) {
      config.gossip.firewall.distance = DistancePolicy::clip;
      config.gossip.blend = blend;
    });
    for (int i = 0; i < 8; ++i) REQUIRE(nodes.step_at(1).factor == 0.5);
    const StepReport report = nodes.step_at(20);  // the bound is at 2
    CHECK(report.outcome == Outcome::mixed);
    CHECK(report.clipped);
    CHECK(report.factor == doctest::Approx(0.05));
    CHECK(report.distance == doctest::Approx(20 * 8));
    for (const float value : nodes.cluster.at(0).values()) CHECK(value == doctest::Approx(1.0));
  }
}

TEST_CASE("with blocks each one is held to its own bound") {
  FarPeer nodes(
      [](Config& config) {
        config.gossip.firewall.distance = DistancePolicy::clip;
        config.gossip.blocks = 2;
      },
      2);
  const auto step = [&](float second_half) {
    VectorNode& peer = nodes.cluster.at(1);
    std::ranges::fill(nodes.cluster.at(0).values(), 0.0F);
    std::ranges::fill(peer.values().first(elements / 2), 1.0F);
    std::ranges::fill(peer.values().last(elements / 2), second_half);
    peer.gossip().publish([] { return 1.0; });
    return step_with_pull(nodes.cluster.at(0));
  };
  for (int i = 0; i < 16; ++i) REQUIRE_FALSE(step(50).clipped);
  for (int i = 0; i < 2; ++i) {
    const StepReport report = step(200);
    CHECK(report.clipped == (report.block == 1));
    CHECK(report.factor == doctest::Approx(report.block == 1 ? 0.25 : 0.5));
  }
}

}  // namespace dpwa
