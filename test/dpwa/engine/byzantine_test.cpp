#include <doctest/doctest.h>

#include <algorithm>

#include "test/dpwa/engine/byzantine_cluster.h"

namespace dpwa::world::testing {
namespace {

struct Result {
  double error;
  double consensus_distance;
};

// Worst of the last rounds, with a liar that turns after 50 honest ones, or lies from the first.
Result attacked(ByzantineCluster& cluster, double lie, bool from_the_first) {
  if (!from_the_first) cluster.run(50, 1);
  cluster.run(300, lie);
  Result worst{0, 0};
  for (int round = 0; round < 100; ++round) {
    cluster.run(1, lie);
    worst.error = std::max(worst.error, cluster.error());
    worst.consensus_distance = std::max(worst.consensus_distance, cluster.consensus_distance());
  }
  return worst;
}

TEST_CASE("with clip and refuse a liar of a hundred times leaves the others' consensus as it is") {
  for (const std::size_t honest : {3, 7, 8, 15}) {
    ByzantineCluster peaceful(honest, DistancePolicy::off);
    const Result peace = attacked(peaceful, 1, false);
    for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
      for (const double lie : {100.0, -100.0}) {
        for (const bool from_the_first : {false, true}) {
          CAPTURE(honest);
          CAPTURE(static_cast<int>(policy));
          CAPTURE(lie);
          CAPTURE(from_the_first);
          ByzantineCluster cluster(honest, policy);
          const Result result = attacked(cluster, lie, from_the_first);
          CHECK(result.error < 1.5 * peace.error);
          CHECK(result.consensus_distance < 2 * peace.consensus_distance);
          // One that was carried away before there was a bound is an outlier until it is back.
          if (!from_the_first) CHECK(cluster.accusations() == 0);
        }
      }
    }
  }
}

// Some five medians away: never an offence with clip, so it goes on for ever.
TEST_CASE("a liar that is clipped again and again holds the others back, but carries none away") {
  for (const std::size_t honest : {7, 8, 15}) {
    ByzantineCluster peaceful(honest, DistancePolicy::off);
    const Result peace = attacked(peaceful, 1, false);
    for (const double lie : {0.7, 1.3}) {
      CAPTURE(honest);
      CAPTURE(lie);
      ByzantineCluster cluster(honest, DistancePolicy::clip);
      const Result result = attacked(cluster, lie, false);
      CHECK(result.error < 4 * peace.error);
      CHECK(result.consensus_distance < 3 * peace.consensus_distance);
      CHECK(cluster.pulls_of_liar() > 0.9 / static_cast<double>(honest));
    }
  }
}

TEST_CASE("with off and warn the same liar carries the others away") {
  for (const std::size_t honest : {8, 15}) {
    ByzantineCluster peaceful(honest, DistancePolicy::off);
    const Result peace = attacked(peaceful, 1, false);
    for (const auto policy : {DistancePolicy::off, DistancePolicy::warn}) {
      ByzantineCluster cluster(honest, policy);
      const Result result = attacked(cluster, 100, false);
      CHECK(result.error > 50 * peace.error);
      CHECK(result.consensus_distance > 50 * peace.consensus_distance);
    }
  }
}

TEST_CASE("with clip and refuse a liar of a hundred times is hardly asked, restarts or not") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    for (const bool restarts : {false, true}) {
      ByzantineCluster cluster(15, policy);
      cluster.run(50, 1);
      cluster.count_anew();
      cluster.set_restarting(restarts);
      cluster.run(300, 100);
      CHECK(cluster.pulls_of_liar() < 0.03);
      CHECK(cluster.blends() > 0.999);
      CHECK(cluster.accusations() == 0);
    }
  }
}

TEST_CASE("without a liar clip and refuse leave the averaging of honest nodes as it is") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    ByzantineCluster plain(8, DistancePolicy::off);
    ByzantineCluster guarded(8, policy);
    const Result before = attacked(plain, 1, false);
    const Result after = attacked(guarded, 1, false);
    CHECK(after.error == doctest::Approx(before.error).epsilon(0.05));
    CHECK(after.consensus_distance == doctest::Approx(before.consensus_distance).epsilon(0.05));
    CHECK(guarded.accusations() == 0);
  }
}

// The first node stands still while the others' optimum moves: when it is back, it is some thirty
// times as far from them as they are from each other. After how many rounds all are together again.
int rounds_to_come_back(std::size_t honest, DistancePolicy policy, double lie) {
  ByzantineCluster cluster(honest, policy);
  cluster.run(100, lie);
  double steady = 0;
  for (int round = 0; round < 50; ++round) {
    cluster.run(1, lie);
    steady += cluster.consensus_distance() / 50;
  }
  cluster.set_frozen({0});
  cluster.set_optimum(3);
  cluster.run(60, lie);
  cluster.set_frozen({});
  CHECK(cluster.consensus_distance() > 4 * steady);
  int rounds = 0;
  while (cluster.consensus_distance() >= 2 * steady && rounds < 200) {
    cluster.run(1, lie);
    ++rounds;
  }
  return rounds;
}

TEST_CASE("a node that was apart from the others for long is back with them in a few rounds") {
  for (const std::size_t honest : {3, 4, 7, 8, 15}) {
    for (const auto policy : {DistancePolicy::off, DistancePolicy::clip, DistancePolicy::refuse}) {
      for (const double lie : {1.0, 100.0}) {
        if (policy == DistancePolicy::off && lie != 1) continue;
        CAPTURE(honest);
        CAPTURE(static_cast<int>(policy));
        CAPTURE(lie);
        const int rounds = rounds_to_come_back(honest, policy, lie);
        CHECK(rounds <= 10);
      }
    }
  }
}

// The worst error in any of 200 rounds, of models that all begin at `value` and train for 1.
double worst_from_the_first_pull(std::size_t honest, DistancePolicy policy, double value,
                                 double lie) {
  ByzantineCluster cluster(honest, policy);
  cluster.begin_at(value);
  double worst = cluster.error();
  for (int round = 0; round < 200; ++round) {
    cluster.run(1, lie);
    worst = std::max(worst, cluster.error());
  }
  return worst;
}

TEST_CASE("a liar that lies from the very first pull does no more harm than later") {
  for (const std::size_t honest : {2, 3, 7, 15}) {
    for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
      for (const double lie : {-5.0, 1e200}) {
        CAPTURE(honest);
        CAPTURE(static_cast<int>(policy));
        CAPTURE(lie);
        const double peace = worst_from_the_first_pull(honest, policy, 1.5, 1);
        const double harm = worst_from_the_first_pull(honest, policy, 1.5, lie);
        CHECK(harm < 1.5 * peace);
      }
    }
  }
}

TEST_CASE("a liar that overflows every number is kept out under every policy") {
  for (const auto policy : {DistancePolicy::off, DistancePolicy::warn}) {
    const double peace = worst_from_the_first_pull(3, policy, 1.5, 1);
    CHECK(worst_from_the_first_pull(3, policy, 1.5, 1e200) < 1.5 * peace);
  }
}

constexpr DistancePolicy measuring[] = {DistancePolicy::warn, DistancePolicy::clip,
                                        DistancePolicy::refuse};

TEST_CASE("healthy nodes log no distance, whatever node stands still a while") {
  for (const std::size_t honest : {2, 3, 4, 8}) {
    for (const auto policy : measuring) {
      CAPTURE(honest);
      CAPTURE(static_cast<int>(policy));
      ByzantineCluster cluster(honest, policy);
      cluster.begin_at(8);  // far from what they train for: distances are small at first
      for (const int pause : {10, 40, 100}) {
        cluster.run(60, 1);
        cluster.set_frozen({honest - 1});
        cluster.set_optimum(cluster.optimum() + 2);
        cluster.run(pause, 1);
        cluster.set_frozen({});
      }
      cluster.run(60, 1);
      CHECK(cluster.reports() == 0);
      CHECK(cluster.blends() > 0.95);
    }
  }
}

TEST_CASE("a liar is reported under every policy that measures") {
  for (const auto policy : measuring) {
    for (const bool from_the_first : {false, true}) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(from_the_first);
      ByzantineCluster cluster(15, policy);
      if (policy == DistancePolicy::warn && from_the_first) continue;  // all are carried away
      cluster.begin_at(8);
      if (!from_the_first) cluster.run(60, 1);
      cluster.run(300, -0.2);  // more carries all of them away, with warn
      CHECK(cluster.reports() > 0);
    }
  }
}

// Means of some runs of four nodes, one of which trains for something else.
double outlier_of(DistancePolicy policy, double offset, bool ledger) {
  ByzantineCluster cluster(4, policy, ledger);
  cluster.set_outlier(offset);
  cluster.run(2000, 0);
  double distance = 0;  // to the mean of the others, in the second half
  for (int i = 0; i < 200; ++i) {
    cluster.run(10, 0);
    distance += cluster.outlier_distance() / 200;
  }
  MESSAGE("outlier " << offset << ", policy " << static_cast<int>(policy)
                     << std::string(ledger ? ", ledger" : "") << ": distance " << distance);
  return distance;
}

// Its data differs. The others clip or refuse it, and that must not keep it from blending them.
TEST_CASE("the ledger drives no honest node away from those that find it far") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    for (const double offset : {0.5, 1.0, 2.0, 3.0}) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(offset);
      const double plain = outlier_of(policy, offset, false);
      CHECK(outlier_of(policy, offset, true) < 1.2 * plain);
    }
  }
}

}  // namespace
}  // namespace dpwa::world::testing
