#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "dpwa/core/firewall.h"
#include "dpwa/core/peer_table.h"
#include "dpwa/core/pull_round.h"
#include "dpwa/core/random.h"

using namespace std::chrono_literals;
using namespace dpwa;

namespace {

constexpr std::size_t dimensions = 32;
constexpr auto step = 20ms;
using Vector = std::vector<double>;

double distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t d = 0; d < dimensions; ++d) sum += std::pow(a[d] - b[d], 2);
  return std::sqrt(sum);
}

// Honest nodes that descend towards 1 with noise and average in rounds, and a last one that answers
// with lies: the very objects that a real node decides with, on a virtual clock.
class Cluster {
 public:
  Cluster(std::size_t honest, DistancePolicy policy) : honest_(honest) {
    FirewallOptions options;
    options.distance = policy;
    for (std::size_t i = 0; i < honest; ++i) {
      nodes_.push_back({Vector(dimensions, 0.0),
                        PeerTable(std::vector<std::string>(honest, "peer"), {}, {}),
                        Firewall(options, honest)});
    }
  }

  // `lie`: the liar's answer is so many times what it has, which is what an honest node has.
  void run(int rounds, double lie) {
    for (int round = 0; round < rounds; ++round) {
      now_ += step;
      for (Node& node : nodes_) {
        for (double& value : node.values) value += 0.1 * (1 - value) + random_.normal(0, 0.05);
      }
      std::vector<Vector> snapshots;
      for (const Node& node : nodes_) snapshots.push_back(node.values);
      snapshots.push_back(snapshots.front());
      for (double& value : snapshots.back()) value *= lie;
      for (std::size_t i = 0; i < honest_; ++i) pull(i, snapshots);
    }
  }

  double error() const {  // root mean square over the nodes of the distance to what they train for
    double sum = 0;
    for (const Node& node : nodes_)
      sum += std::pow(distance(node.values, Vector(dimensions, 1.0)), 2);
    return std::sqrt(sum / static_cast<double>(honest_));
  }
  double consensus_distance() const {
    Vector mean(dimensions, 0.0);
    for (const Node& node : nodes_) {
      for (std::size_t d = 0; d < dimensions; ++d)
        mean[d] += node.values[d] / static_cast<double>(honest_);
    }
    double sum = 0;
    for (const Node& node : nodes_) sum += std::pow(distance(node.values, mean), 2);
    return std::sqrt(sum / static_cast<double>(honest_));
  }
  std::size_t quarantining_the_liar() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        nodes_, [this](const Node& node) { return node.firewall.record(liar()).quarantines > 0; }));
  }
  std::uint64_t quarantines_of_honest_nodes() const {
    std::uint64_t sum = 0;
    for (const Node& node : nodes_) {
      for (PeerId peer = 0; peer < liar(); ++peer) sum += node.firewall.record(peer).quarantines;
    }
    return sum;
  }

 private:
  struct Node {
    Vector values;
    PeerTable table;
    Firewall firewall;
  };

  PeerId liar() const { return static_cast<PeerId>(honest_ - 1); }  // as every honest node counts

  void pull(std::size_t index, const std::vector<Vector>& snapshots) {
    Node& node = nodes_[index];
    PullRound round;
    round.begin(now_, 1s);
    while (const auto peer = round.next_peer(node.table, now_, random_)) {
      const Vector& theirs = snapshots[*peer < index ? *peer : *peer + 1];
      const auto verdict = node.firewall.judge(*peer, 0, distance(theirs, node.values));
      if (verdict.refused) {
        const auto until = node.firewall.failed(*peer, PeerFailure::distant, now_);
        if (until) node.table.hold(*peer, *until);
        round.failed(node.table, PeerFailure::distant, now_, random_);
        continue;
      }
      const auto until = node.firewall.succeeded(*peer, verdict, now_);
      if (until) node.table.hold(*peer, *until);
      round.succeeded(node.table, {});
      for (std::size_t d = 0; d < dimensions; ++d)
        node.values[d] += 0.5 * verdict.scale * (theirs[d] - node.values[d]);
    }
  }

  const std::size_t honest_;
  std::vector<Node> nodes_;
  Random random_{7};
  TimePoint now_ = TimePoint() + 1h;
};

struct Result {
  double error;
  double consensus_distance;
};

// Worst of the last rounds, with a liar that turns after 50 honest ones, or lies from the first.
Result attacked(Cluster& cluster, double lie, bool from_the_first) {
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

}  // namespace

TEST_CASE("with clip and refuse a liar of a hundred times leaves the others' consensus as it is") {
  for (const std::size_t honest : {3, 7, 8, 15}) {
    Cluster peaceful(honest, DistancePolicy::off);
    const Result peace = attacked(peaceful, 1, false);
    for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
      for (const double lie : {100.0, -100.0}) {
        for (const bool from_the_first : {false, true}) {
          CAPTURE(honest);
          CAPTURE(static_cast<int>(policy));
          CAPTURE(lie);
          CAPTURE(from_the_first);
          Cluster cluster(honest, policy);
          const Result result = attacked(cluster, lie, from_the_first);
          CHECK(result.error < 1.5 * peace.error);
          CHECK(result.consensus_distance < 2 * peace.consensus_distance);
          // One that was carried away before there was a bound is an outlier until it is back.
          if (!from_the_first) CHECK(cluster.quarantines_of_honest_nodes() == 0);
        }
      }
    }
  }
}

// Some five medians away: never an offence with clip, so it goes on for ever.
TEST_CASE("a liar that is clipped again and again holds the others back, but carries none away") {
  for (const std::size_t honest : {7, 8, 15}) {
    Cluster peaceful(honest, DistancePolicy::off);
    const Result peace = attacked(peaceful, 1, false);
    for (const double lie : {0.7, 1.3}) {
      CAPTURE(honest);
      CAPTURE(lie);
      Cluster cluster(honest, DistancePolicy::clip);
      const Result result = attacked(cluster, lie, false);
      CHECK(result.error < 4 * peace.error);
      CHECK(result.consensus_distance < 3 * peace.consensus_distance);
      CHECK(cluster.quarantining_the_liar() == 0);
    }
  }
}

TEST_CASE("with off and warn the same liar carries the others away") {
  for (const std::size_t honest : {8, 15}) {
    Cluster peaceful(honest, DistancePolicy::off);
    const Result peace = attacked(peaceful, 1, false);
    for (const auto policy : {DistancePolicy::off, DistancePolicy::warn}) {
      Cluster cluster(honest, policy);
      const Result result = attacked(cluster, 100, false);
      CHECK(result.error > 50 * peace.error);
      CHECK(result.consensus_distance > 50 * peace.consensus_distance);
    }
  }
}

TEST_CASE("with refuse every honest node quarantines the liar, and no honest one") {
  Cluster cluster(15, DistancePolicy::refuse);
  cluster.run(50, 1);
  cluster.run(300, 100);
  CHECK(cluster.quarantining_the_liar() == 15);
  CHECK(cluster.quarantines_of_honest_nodes() == 0);
}

TEST_CASE("without a liar clip and refuse leave the averaging of honest nodes as it is") {
  for (const auto policy : {DistancePolicy::clip, DistancePolicy::refuse}) {
    Cluster plain(8, DistancePolicy::off);
    Cluster guarded(8, policy);
    const Result before = attacked(plain, 1, false);
    const Result after = attacked(guarded, 1, false);
    CHECK(after.error == doctest::Approx(before.error).epsilon(0.05));
    CHECK(after.consensus_distance == doctest::Approx(before.consensus_distance).epsilon(0.05));
    CHECK(guarded.quarantines_of_honest_nodes() == 0);
  }
}
