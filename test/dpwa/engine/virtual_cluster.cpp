#include "test/dpwa/engine/virtual_cluster.h"

#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "dpwa/rules/progress.h"
#include "interpolation/registry.h"
#include "test/dpwa/engine/pull_driver.h"

namespace dpwa::test {

namespace {

PullEngineOptions engine_options(const ClusterOptions& options, std::uint64_t seed) {
  PullEngineOptions engine;
  engine.staleness = options.staleness;
  engine.firewall.distance = options.distance;
  engine.seed = derive_seed(seed, {1});
  return engine;
}

TrainerState make_trainer(const ClusterOptions& options, std::uint64_t seed) {
  TrainerOptions trainer;
  trainer.by_delta = false;
  trainer.spread_pulls = false;
  trainer.timeout = options.timeout;
  Random random(derive_seed(seed, {2}));
  auto policy = interpolation_registry().make("constant", {{"value", options.factor}});
  return TrainerState(trainer, GuardedInterpolation(std::move(policy), 0.5), random);
}

}  // namespace

VirtualCluster::Node::Node(const std::vector<std::string>& peer_names,
                           const ClusterOptions& options, std::uint64_t seed)
    : engine(engine_options(options, seed), peer_names),
      random(seed),
      trainer(make_trainer(options, seed)) {}

VirtualCluster::VirtualCluster(ClusterOptions options) : options_(options) {
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    nodes_.push_back(make_node(i, 1));
    Node& node = *nodes_.back();
    for (std::size_t d = 0; d < options_.dimensions; ++d) {
      node.values.push_back(node.random.normal(0, 1));
    }
    node.trainer.replace(0, 1);
    node.progress = node.trainer.progress();
    node.progress.version = 1;
    schedule_step(i);
  }
}

std::unique_ptr<VirtualCluster::Node> VirtualCluster::make_node(std::size_t node,
                                                                std::uint64_t incarnation) const {
  auto made = std::make_unique<Node>(peer_names(node, options_.nodes), options_,
                                     derive_seed(options_.seed, {node, incarnation}));
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

const PeerRecord& VirtualCluster::record(std::size_t node, std::size_t peer) const {
  return nodes_[node]->engine.table().at(peer_id(node, peer));
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
  absorb(node);
  node.trainer.step_begins(now_);
  if (!node.values.empty()) publish(node);
  if (!node.pulling) {
    RoundSpec round = node.trainer.plan_pull(node.random);
    node.trainer.began(round);
    node.pulling = true;
    node.record = {now_, now_, index, index, 0, 0, 0, Outcome::skipped};
    if (node.values.empty()) round.exchange = take_over;  // as StartUp of the real node
    node.engine.begin(round);
    advance(index);
  }
  node.trainer.end_step(node.pulling, {});
  node.trainer.take_lines();
  schedule_step(index);
}

void VirtualCluster::publish(Node& node) {
  const std::uint64_t version = node.progress.version + 1;
  node.progress = node.trainer.publish();
  node.progress.version = version;
}

void VirtualCluster::absorb(Node& node) {
  if (!node.arrival) return;
  const Arrival arrival = *std::exchange(node.arrival, std::nullopt);
  const std::vector<double> arrived = std::exchange(node.arrived, {});
  if (node.values.empty()) {  // it starts: StartUp of the real node takes over any weights
    if (arrival.outcome != Outcome::mixed) return;
    node.values = arrived;
    node.trainer.replace(arrival.progress.clock, arrival.progress.lineage);
    return;
  }
  const Absorbed what = node.trainer.absorb(arrival, {}, now_);
  if (what == Absorbed::adopt) {
    node.values = arrived;
    node.trainer.take_over(arrival, now_);
  } else if (what == Absorbed::blend) {
    const double factor = node.trainer.blend(arrival, 0);
    for (std::size_t d = 0; d < arrived.size(); ++d)
      node.values[d] += factor * (arrived[d] - node.values[d]);
  }
}

void VirtualCluster::advance(std::size_t index) {
  Node& node = *nodes_[index];
  PullEngine::Action action = node.engine.next(node.progress.clock, now_);
  if (const auto* wait = std::get_if<PullEngine::Wait>(&action)) {
    schedule(index, now_ + wait->time, [this, index] { advance(index); });
  } else if (const auto* asked = std::get_if<PullEngine::Ask>(&action)) {
    ask(index, *asked);
  } else {
    end_round(index, std::move(std::get<Arrival>(action)));
  }
}

void VirtualCluster::ask(std::size_t index, const PullEngine::Ask& ask) {
  Node& node = *nodes_[index];
  const std::size_t target = node_of(index, ask.peer);
  attempts_.push_back({now_, index, target});
  ++node.record.attempts;
  node.record.peer = target;
  const TimePoint soon = now_ + options_.latency;
  const TimePoint deadline = now_ + ask.left;
  const auto answer = [this, index, target, ask] { answered(index, target, ask); };
  switch (nodes_[target]->behaviour) {
    case Behaviour::serving:
    case Behaviour::frozen:
      return schedule(index, soon, answer);
    case Behaviour::late:
      return schedule(index, deadline - std::chrono::milliseconds(10), answer);
    case Behaviour::busy:
      // A node that was reached has heard of the caller, though it gives nothing.
      nodes_[target]->engine.called(node_name(index), node.incarnation);
      return fails(index, PeerFailure::busy, soon);
    case Behaviour::rejecting:
      return fails(index, PeerFailure::rejected, soon);
    case Behaviour::refusing:
    case Behaviour::down:
      return fails(index, PeerFailure::unreachable, soon);
    case Behaviour::silent:
      return fails(index, PeerFailure::unreachable, deadline, /*late=*/true);
  }
}

void VirtualCluster::fails(std::size_t index, PeerFailure failure, TimePoint at, bool late) {
  schedule(index, at, [this, index, failure, late] {
    Answer answer;
    answer.failure = failure;
    settle(index, answer, late);
  });
}

void VirtualCluster::answered(std::size_t index, std::size_t target, const PullEngine::Ask& ask) {
  Node& node = *nodes_[index];
  Node& peer = *nodes_[target];
  peer.engine.called(node_name(index), node.incarnation);
  Answer answer;
  answer.incarnation = peer.incarnation;
  const bool known =
      ask.known_incarnation == peer.incarnation && ask.known_version == peer.progress.version;
  if (peer.progress.version == 0) {  // it has just been restarted
    answer.failure = PeerFailure::not_ready;
  } else if (known) {
    answer.failure = PeerFailure::unchanged;
  } else {
    answer.progress = peer.progress;
    answer.failure = node.engine.head(peer.progress, node.progress.lineage);
    if (!answer.failure) land(node, peer, answer);
  }
  settle(index, answer);
}

void VirtualCluster::land(Node& node, const Node& peer, Answer& answer) const {
  kernels::PassStats stats;
  for (std::size_t d = 0; d < options_.dimensions; ++d) {
    const double own = node.values.empty() ? 0 : node.values[d];
    stats.squared_distance += std::pow(peer.values[d] - own, 2);
  }
  node.arrived = peer.values;
  node.engine.landed(answer, stats, node.progress);
}

void VirtualCluster::settle(std::size_t index, const Answer& answer, bool late) {
  Node& node = *nodes_[index];
  const auto settled = node.engine.settle(answer, late, false, now_);
  node.engine.take_log();
  if (settled.failure) node.arrived.clear();
  node.record.unchanged += settled.failure == PeerFailure::unchanged ? 1 : 0;
  node.record.stale += settled.failure == PeerFailure::stale ? 1 : 0;
  advance(index);
}

void VirtualCluster::end_round(std::size_t index, Arrival arrival) {
  Node& node = *nodes_[index];
  node.pulling = false;
  node.record.ended = now_;
  node.record.outcome = arrival.outcome;
  rounds_.push_back(node.record);
  node.arrival = std::move(arrival);
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

}  // namespace dpwa::test
