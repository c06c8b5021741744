#include "test/dpwa/rules/virtual_cluster.h"

#include <cmath>
#include <string>
#include <utility>

#include "dpwa/rules/clock.h"

namespace dpwa::testing {

VirtualCluster::Node::Node(const std::vector<std::string>& peer_names,
                           const ClusterOptions& options, std::uint64_t seed)
    : table(peer_names, FlowControl{}, Backoff{}), guard(options.staleness), random(seed) {}

VirtualCluster::VirtualCluster(ClusterOptions options) : options_(options) {
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    nodes_.push_back(make_node(i, 1));
    Node& node = *nodes_.back();
    for (std::size_t d = 0; d < options_.dimensions; ++d) {
      node.values.push_back(node.random.normal(0, 1));
    }
    node.progress.lineage = 1;
    schedule_step(i);
  }
}

std::unique_ptr<VirtualCluster::Node> VirtualCluster::make_node(std::size_t node,
                                                                std::uint64_t incarnation) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    if (i != node) names.push_back(std::string("w").append(std::to_string(i)));
  }
  auto made =
      std::make_unique<Node>(names, options_, derive_seed(options_.seed, {node, incarnation}));
  made->incarnation = incarnation;
  return made;
}

bool VirtualCluster::trains(Behaviour behaviour) {
  return behaviour != Behaviour::frozen && behaviour != Behaviour::silent &&
         behaviour != Behaviour::down;
}

PeerId VirtualCluster::peer_id(std::size_t node, std::size_t peer) const {
  return static_cast<PeerId>(peer < node ? peer : peer - 1);
}

std::size_t VirtualCluster::node_index(std::size_t node, PeerId peer) const {
  return peer < node ? peer : peer + 1;
}

const PeerRecord& VirtualCluster::record(std::size_t node, std::size_t peer) const {
  return nodes_[node]->table.at(peer_id(node, peer));
}

void VirtualCluster::clear() {
  attempts_.clear();
  rounds_.clear();
}

void VirtualCluster::run(Duration time) {
  const TimePoint end = now_ + time;
  while (!events_.empty() && events_.top().at <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    if (event.life == nodes_[event.node]->life) event.action();
  }
  now_ = end;
}

void VirtualCluster::schedule(std::size_t node, TimePoint at, std::function<void()> action) {
  events_.push({at, order_++, node, nodes_[node]->life, std::move(action)});
}

void VirtualCluster::schedule_step(std::size_t node) {
  const auto time =
      std::chrono::duration_cast<Duration>(options_.step * nodes_[node]->random.uniform(0.9, 1.1));
  schedule(node, now_ + time, [this, node] { step(node); });
}

void VirtualCluster::set(std::size_t node, Behaviour behaviour) {
  Node& changed = *nodes_[node];
  const bool trained = trains(changed.behaviour);
  changed.behaviour = behaviour;
  if (trained == trains(behaviour)) return;
  ++changed.life;
  changed.pulling = false;
  if (trains(behaviour)) schedule_step(node);
}

void VirtualCluster::restart(std::size_t node) {
  const std::uint64_t life = nodes_[node]->life + 1;
  nodes_[node] = make_node(node, nodes_[node]->incarnation + 1);
  nodes_[node]->life = life;
  schedule_step(node);
}

void VirtualCluster::step(std::size_t index) {
  Node& node = *nodes_[index];
  if (!node.values.empty()) {
    node.progress.clock = clock_after_publish(node.progress.clock);
    ++node.progress.version;
  }
  if (!node.arrived.empty()) blend(node);
  if (!node.pulling) {
    node.pulling = true;
    node.round.begin(now_, options_.timeout);
    node.record = {now_, now_, index, index, 0, Outcome::skipped};
    try_next(index);
  }
  schedule_step(index);
}

void VirtualCluster::blend(Node& node) {
  const std::vector<double> arrived = std::exchange(node.arrived, {});
  const Progress& peer = node.arrived_progress;
  if (adopts(node.progress, peer)) {
    node.values = arrived;
    node.progress.lineage = peer.lineage;
    node.progress.clock = peer.clock;
    return;
  }
  for (std::size_t d = 0; d < arrived.size(); ++d) {
    node.values[d] += options_.factor * (arrived[d] - node.values[d]);
  }
  node.progress.clock = clock_after_lerp(node.progress.clock, peer.clock, options_.factor);
}

void VirtualCluster::try_next(std::size_t index) {
  Node& node = *nodes_[index];
  const std::optional<PeerId> peer = node.round.next_peer(node.table, now_, node.random);
  if (!peer) return end_round(index, node.round.outcome());

  const std::size_t target = node_index(index, *peer);
  attempts_.push_back({now_, index, target});
  ++node.record.attempts;
  node.record.peer = target;
  const TimePoint soon = now_ + options_.latency;
  switch (nodes_[target]->behaviour) {
    case Behaviour::serving:
    case Behaviour::frozen:
      return schedule(index, soon, [this, index, target] { answered(index, target); });
    case Behaviour::late:
      return schedule(index, node.round.deadline() - std::chrono::milliseconds(10),
                      [this, index, target] { answered(index, target); });
    case Behaviour::busy:
      return attempt_failed(index, *peer, PeerFailure::busy, soon);
    case Behaviour::rejecting:
      return attempt_failed(index, *peer, PeerFailure::rejected, soon);
    case Behaviour::refusing:
    case Behaviour::down:
      return attempt_failed(index, *peer, PeerFailure::unreachable, soon);
    case Behaviour::silent:
      return attempt_failed(index, *peer, PeerFailure::timed_out, node.round.deadline());
  }
}

void VirtualCluster::attempt_failed(std::size_t index, PeerId peer, PeerFailure failure,
                                    TimePoint at) {
  schedule(index, at, [this, index, peer, failure] {
    Node& node = *nodes_[index];
    // A node that was reached has heard of the caller, though it gave nothing.
    if (failure == PeerFailure::busy) {
      const std::size_t target = node_index(index, peer);
      nodes_[target]->table.returned(peer_id(target, index), node.incarnation);
    }
    node.round.failed(node.table, failure, now_, node.random);
    try_next(index);
  });
}

void VirtualCluster::answered(std::size_t index, std::size_t target) {
  Node& node = *nodes_[index];
  Node& peer = *nodes_[target];
  const PeerId id = peer_id(index, target);
  peer.table.returned(peer_id(target, index), node.incarnation);
  node.table.returned(id, peer.incarnation);
  if (peer.values.empty()) {  // it has just been restarted
    node.round.failed(node.table, PeerFailure::not_ready, now_, node.random);
    return try_next(index);
  }
  node.round.succeeded(node.table, peer.progress, now_);
  if (!adopts(node.progress, peer.progress) &&
      !node.guard.accept(id, peer.progress.clock, node.progress.clock, now_)) {
    return end_round(index, Outcome::stale);
  }
  node.arrived = peer.values;
  node.arrived_progress = peer.progress;
  end_round(index, Outcome::mixed);
}

void VirtualCluster::end_round(std::size_t index, Outcome outcome) {
  Node& node = *nodes_[index];
  node.pulling = false;
  node.record.ended = now_;
  node.record.outcome = outcome;
  rounds_.push_back(node.record);
}

double VirtualCluster::consensus_variance() const {
  std::vector<double> mean(options_.dimensions, 0.0);
  double count = 0;
  for (const auto& node : nodes_) {
    if (node->values.empty()) continue;
    ++count;
    for (std::size_t d = 0; d < mean.size(); ++d) mean[d] += node->values[d];
  }
  double sum = 0;
  for (const auto& node : nodes_) {
    if (node->values.empty()) continue;
    for (std::size_t d = 0; d < mean.size(); ++d) {
      sum += std::pow(node->values[d] - mean[d] / count, 2);
    }
  }
  return sum / count;
}

}  // namespace dpwa::testing
