#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "test/support/log_file.h"
#include "test/support/vector_cluster.h"

namespace dpwa {
namespace {

using test::VectorCluster;
using test::VectorNode;

// Steps wait for their pulls.
void in_step(Config& config) {
  config.gossip.step_budget = config.gossip.timeout;
}

StepReport step_of(VectorNode& node) {
  node.gossip().update_send([] { return 1.0; });
  return node.gossip().update_wait();
}

// What a node that lies publishes: weights of a lineage that nobody has heard of.
void publish_as(VectorNode& node, std::uint64_t lineage, double clock, std::uint64_t version) {
  auto writer = node.gossip().node().local().store.begin();
  if (!writer) return;
  Progress progress;
  progress.version = version;
  progress.lineage = lineage;
  progress.clock = clock;
  node.gossip().node().local().store.publish(std::move(*writer), progress);
}

std::uint64_t lineage_of(VectorNode& node) {
  return node.gossip().resume_state().lineage;
}

}  // namespace

TEST_CASE("a peer with a new lineage and a higher clock at every pull moves no honest node") {
  for (const DistancePolicy policy : {DistancePolicy::warn, DistancePolicy::refuse}) {
    VectorCluster cluster(4, 64, [policy](Config& config) {
      in_step(config);
      config.gossip.firewall.distance = policy;
    });
    cluster.start();
    const std::uint64_t lineage = lineage_of(cluster.at(0));
    for (std::uint64_t step = 1; step <= 60; ++step) {
      publish_as(cluster.at(3), 1000 + step, 1e3 * static_cast<double>(step), 1000 + step);
      for (std::size_t i = 0; i < 3; ++i) step_of(cluster.at(i));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(lineage_of(cluster.at(i)) == lineage);
      CHECK(cluster.at(i).gossip().resume_state().clock < 100);
    }
  }
}

TEST_CASE("a peer of another lineage for ever costs the others none of their blends") {
  for (const bool same_host : {true, false}) {
    for (const bool new_each_time : {true, false}) {
      CAPTURE(same_host);
      CAPTURE(new_each_time);
      VectorCluster cluster(4, 64, [same_host](Config& config) {
        in_step(config);
        config.gossip.seed = 1;
        config.transport.same_host = same_host;
      });
      cluster.start();
      for (std::size_t i = 0; i < 4; ++i) step_of(cluster.at(i));
      int blends = 0;
      for (std::uint64_t step = 1; step <= 40; ++step) {
        const std::uint64_t lineage = new_each_time ? 1000 + step : 1000;
        publish_as(cluster.at(3), lineage, static_cast<double>(step), 1000 + step);
        for (std::size_t i = 0; i < 3; ++i) cluster.at(i).gossip().publish([] { return 1.0; });
        for (std::size_t i = 0; i < 3; ++i) {
          cluster.at(i).gossip().begin_pull();
          blends += cluster.at(i).gossip().update_wait().outcome == Outcome::mixed ? 1 : 0;
        }
      }
      CHECK(blends == 3 * 40);
    }
  }
}

TEST_CASE("of two nodes the one with the lower clock follows the other once, and not for ever") {
  const test::LogFile log;
  VectorCluster cluster(2, 64, in_step);
  cluster.start();
  for (std::uint64_t step = 1; step <= 60; ++step) {
    publish_as(cluster.at(1), 1000 + step / 10, 1e3 * static_cast<double>(step), 1000 + step);
    step_of(cluster.at(0));
  }
  CHECK(log.count("more nodes of the file descend from these") == 1);
}

TEST_CASE("after a split has healed all nodes come to one lineage, that of more of them") {
  struct Split {
    std::vector<double> clocks;  // of each node; the sign tells the side
    double winner;               // its sign; 0: either
  };
  for (const Split& split :
       {Split{{90, 80, -7, -6}, 1}, Split{{5, 4, -60, -70}, -1}, Split{{5, 6, 7, -1000}, 1}}) {
    const test::LogFile log;
    VectorCluster cluster(4, 64, in_step);
    cluster.start();
    for (std::size_t i = 0; i < 4; ++i) {
      const double clock = split.clocks[i];
      cluster.at(i).gossip().restore({std::abs(clock), clock > 0 ? 50U : 70U, 1});
      for (float& value : cluster.at(i).values()) value = clock > 0 ? 1.0F : -1.0F;
    }
    // Else the first to step would hear from all others at once that they descend from the start.
    for (std::size_t i = 0; i < 4; ++i) cluster.at(i).gossip().publish([] { return 1.0; });
    const auto agreed = [&] {
      for (std::size_t i = 1; i < 4; ++i)
        if (lineage_of(cluster.at(i)) != lineage_of(cluster.at(0))) return false;
      return true;
    };
    int rounds = 0;
    for (; rounds < 300 && !agreed(); ++rounds)
      for (std::size_t i = 0; i < 4; ++i) step_of(cluster.at(i));
    CHECK(agreed());
    CHECK(lineage_of(cluster.at(0)) == (split.winner > 0 ? 50U : 70U));
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(cluster.at(i).values()[3] == (split.winner > 0 ? 1.0F : -1.0F));
    CHECK(log.count("more nodes of the file descend from these") <= 2);
  }
}

}  // namespace dpwa
