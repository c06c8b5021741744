#include "test/dpwa/engine/byzantine_cluster.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "dpwa/rules/outcome.h"
#include "dpwa/rules/pull_round.h"
#include "interpolation/guarded.h"
#include "interpolation/registry.h"

namespace dpwa::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t dimensions = 32;
constexpr auto step = 20ms;

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t d = 0; d < dimensions; ++d) sum += std::pow(a[d] - b[d], 2);
  return std::sqrt(sum);
}

}  // namespace

ByzantineCluster::ByzantineCluster(std::size_t honest, DistancePolicy policy)
    : honest_(honest), now_(TimePoint() + 1h) {
  FirewallOptions options;
  options.distance = policy;
  for (std::size_t i = 0; i < honest; ++i) {
    TrainerState state({}, GuardedInterpolation(interpolation_registry().make("constant", {}), 0.5),
                       random_);
    state.replace(0, 1);
    nodes_.push_back({Vector(dimensions, 0.0), std::move(state),
                      PeerTable(std::vector<std::string>(honest, "peer"), {}, {}),
                      Firewall(options, honest)});
  }
}

void ByzantineCluster::begin_at(double value) {
  for (Node& node : nodes_) std::ranges::fill(node.values, value);
}

void ByzantineCluster::run(int rounds, double lie) {
  for (int round = 0; round < rounds; ++round) {
    now_ += step;
    for (std::size_t i = 0; i < honest_; ++i) {
      if (frozen_.contains(i)) continue;
      nodes_[i].state.publish();
      for (double& value : nodes_[i].values)
        value += 0.1 * (optimum_ - value) + random_.normal(0, 0.05);
    }
    std::vector<Snapshot> snapshots;
    for (const Node& node : nodes_) snapshots.push_back({node.values, node.state.progress()});
    snapshots.push_back(snapshots.front());
    for (double& value : snapshots.back().values) value *= lie;
    for (std::size_t i = 0; i < honest_; ++i) {
      if (!frozen_.contains(i)) pull(i, snapshots);
    }
  }
}

void ByzantineCluster::pull(std::size_t index, const std::vector<Snapshot>& snapshots) {
  Node& node = nodes_[index];
  PullRound round;
  round.begin(now_, 1s);
  while (const auto peer = round.next_peer(node.table, now_, random_)) {
    const std::size_t owner = *peer < index ? *peer : *peer + 1;
    if (frozen_.contains(owner)) {
      round.failed(node.table, PeerFailure::unreachable, now_, random_);
      continue;
    }
    const Vector& theirs = snapshots[owner].values;
    const double clock_gap = snapshots[owner].progress.clock - node.state.clock();
    const double away = distance(theirs, node.values);
    const auto verdict = node.firewall.judge(*peer, 0, away, clock_gap);
    reports_ += verdict.reported ? 1 : 0;
    if (verdict.unproven) {
      round.failed(node.table, PeerFailure::unproven, now_, random_);
      continue;
    }
    if (verdict.refused) {
      const auto until = node.firewall.failed(*peer, PeerFailure::distant, now_);
      if (until) node.table.hold(*peer, *until);
      round.failed(node.table, PeerFailure::distant, now_, random_);
      continue;
    }
    const auto until = node.firewall.succeeded(*peer, verdict, now_);
    if (until) node.table.hold(*peer, *until);
    round.succeeded(node.table, {}, now_);
    blend(node, snapshots[owner], away * away, verdict.scale);
  }
}

void ByzantineCluster::blend(Node& node, const Snapshot& peer, double squared_distance,
                             double scale) {
  Arrival arrival;
  arrival.outcome = Outcome::mixed;
  arrival.progress = peer.progress;
  arrival.own = node.state.progress();
  arrival.stats.squared_distance = squared_distance;
  arrival.factor_scale = scale;
  if (node.state.absorb(arrival, {}, now_) == Absorbed::blend) {
    const double factor = node.state.blend(arrival, 1);
    for (std::size_t d = 0; d < dimensions; ++d)
      node.values[d] += factor * (peer.values[d] - node.values[d]);
  }
  node.state.end_step(false, Duration::zero());
}

double ByzantineCluster::error() const {
  double sum = 0;
  for (const Node& node : nodes_)
    sum += std::pow(distance(node.values, Vector(dimensions, optimum_)), 2);
  return std::sqrt(sum / static_cast<double>(honest_));
}

double ByzantineCluster::consensus_distance() const {
  Vector mean(dimensions, 0.0);
  for (const Node& node : nodes_) {
    for (std::size_t d = 0; d < dimensions; ++d)
      mean[d] += node.values[d] / static_cast<double>(honest_);
  }
  double sum = 0;
  for (const Node& node : nodes_) sum += std::pow(distance(node.values, mean), 2);
  return std::sqrt(sum / static_cast<double>(honest_));
}

std::size_t ByzantineCluster::quarantining_the_liar() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      nodes_, [this](const Node& node) { return node.firewall.record(liar()).quarantines > 0; }));
}

std::uint64_t ByzantineCluster::quarantines_of_honest_nodes() const {
  std::uint64_t sum = 0;
  for (const Node& node : nodes_) {
    for (PeerId peer = 0; peer < liar(); ++peer) sum += node.firewall.record(peer).quarantines;
  }
  return sum;
}

}  // namespace dpwa::testing
