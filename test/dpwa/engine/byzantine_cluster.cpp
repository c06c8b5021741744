#include "test/dpwa/engine/byzantine_cluster.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "interpolation/guarded.h"
#include "interpolation/registry.h"
#include "test/dpwa/engine/pull_driver.h"

namespace dpwa::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t dimensions = 32;
constexpr auto step = 20ms;

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t d = 0; d < dimensions; ++d) sum += std::pow(a[d] - b[d], 2);
  return sum;
}

constexpr double factor = 0.5;

bool tells_of_distance(const LogEntry& entry) {
  return entry.weight == LogEntry::Weight::warn &&
         entry.text.find("sent parameters") != std::string::npos;
}

}  // namespace

ByzantineCluster::ByzantineCluster(std::size_t honest, DistancePolicy policy, bool ledger)
    : honest_(honest), ledger_(ledger), lies_(honest, 0), now_(TimePoint() + 1h) {
  PullEngineOptions options = measuring(policy);
  if (ledger) options.ledger_factor = factor;
  for (std::size_t i = 0; i < honest; ++i) {
    TrainerState state(
        {}, GuardedInterpolation(interpolation_registry().make("constant", {}), factor), random_);
    state.replace(0, 1);
    options.seed = derive_seed(7, {i});
    nodes_.push_back({Vector(dimensions, 0.0), std::move(state),
                      PullEngine(options, peer_names(i, honest + 1))});
  }
}

void ByzantineCluster::begin_at(double value) {
  for (Node& node : nodes_) std::ranges::fill(node.values, value);
}

void ByzantineCluster::run(int rounds, double lie) {
  const Lie scaled = [lie](Snapshot& snapshot, const Vector&, std::uint64_t) {
    for (double& value : snapshot.values) value *= lie;
  };
  run(rounds, lie == 0 ? Lie() : scaled);
}

void ByzantineCluster::run(int rounds, const Lie& lie) {
  for (int i = 0; i < rounds; ++i) round(lie);
}

void ByzantineCluster::round(const Lie& lie) {
  now_ += step;
  ++round_;
  std::vector<Snapshot> snapshots;
  for (std::size_t i = 0; i < honest_; ++i) {
    Node& node = nodes_[i];
    if (!frozen_.contains(i)) {
      node.state.publish();
      const double optimum = i + 1 == honest_ ? optimum_ + outlier_ : optimum_;
      for (double& value : node.values) value += 0.1 * (optimum - value) + random_.normal(0, 0.05);
    }
    snapshots.push_back({node.values, node.state.progress()});
    snapshots.back().progress.version = round_;
  }
  for (std::size_t i = 0; i < honest_; ++i) {
    if (!frozen_.contains(i)) pull(i, snapshots, lie);
  }
}

void ByzantineCluster::pull(std::size_t index, const std::vector<Snapshot>& snapshots,
                            const Lie& lie) {
  Node& node = nodes_[index];
  RoundSpec spec;
  spec.timeout = 1s;
  Snapshot lied = snapshots.front();
  const std::uint64_t process = restarts_ ? round_ : 1;
  if (lie && restarts_) node.engine.called(node_name(honest_), process);
  const auto offer_of = [&](const PullEngine::Ask& ask) {
    const std::size_t owner = node_of(index, ask.peer);
    Offer offer;
    if (frozen_.contains(owner) || (owner == honest_ && !lie))
      offer.failure = PeerFailure::unreachable;
    if (ledger_ && owner < honest_) {
      PullEngine& peer = nodes_[owner].engine;
      peer.called(node_name(index), 1);
      if (ask.taken) peer.stated(node_name(index), 1, *ask.taken);
      offer.keeps_ledger = true;
    }
    if (owner == honest_ && lie) {
      lie(lied, node.values, lies_[index]++);
      ++pulls_of_liar_;
      offer.incarnation = process;
      offer.finite = lied.finite;
    }
    const Snapshot& snapshot = owner == honest_ ? lied : snapshots[owner];
    offer.progress = snapshot.progress;
    offer.squared_distance = squared_distance(snapshot.values, node.values);
    return offer;
  };
  const Arrival arrival = run_round(node.engine, spec, node.state.progress(), now_, offer_of);
  for (const LogEntry& entry : node.engine.take_log()) reports_ += tells_of_distance(entry) ? 1 : 0;
  ++steps_;
  for (PeerId peer = 0; peer < liar(); ++peer)
    accusations_ += node.engine.table().at(peer).offended ? 1 : 0;
  if (node.state.absorb(arrival, {}, now_) == Absorbed::blend) {
    const std::size_t owner = node_of(index, *arrival.peer);
    blend(node, owner == honest_ ? lied : snapshots[owner], arrival);
    ++blends_;
  }
  node.state.end_step(false, Duration::zero());
}

void ByzantineCluster::blend(Node& node, const Snapshot& peer, const Arrival& arrival) {
  const double factor = node.state.blend(arrival, 1);
  for (std::size_t d = 0; d < dimensions; ++d)
    node.values[d] += factor * (peer.values[d] - node.values[d]);
}

double ByzantineCluster::error() const {
  double sum = 0;
  for (const Node& node : nodes_)
    sum += squared_distance(node.values, Vector(dimensions, optimum_));
  return std::sqrt(sum / static_cast<double>(honest_));
}

double ByzantineCluster::consensus_distance() const {
  Vector mean(dimensions, 0.0);
  for (const Node& node : nodes_) {
    for (std::size_t d = 0; d < dimensions; ++d)
      mean[d] += node.values[d] / static_cast<double>(honest_);
  }
  double sum = 0;
  for (const Node& node : nodes_) sum += squared_distance(node.values, mean);
  return std::sqrt(sum / static_cast<double>(honest_));
}

double ByzantineCluster::outlier_distance() const {
  const double others = static_cast<double>(honest_ - 1);
  Vector mean(dimensions, 0.0);
  for (std::size_t i = 0; i + 1 < honest_; ++i) {
    for (std::size_t d = 0; d < dimensions; ++d) mean[d] += nodes_[i].values[d] / others;
  }
  return std::sqrt(squared_distance(nodes_.back().values, mean));
}

}  // namespace dpwa::test
