#include "test/dpwa/engine/pace_cluster.h"

#include <chrono>
#include <utility>
#include <variant>

#include "interpolation/registry.h"

namespace dpwa::test {

namespace {

// Places of the parameters.
constexpr std::size_t unit = 0;
constexpr std::size_t constant_gradient = 1;
constexpr std::size_t initial = 2;       // four of them
constexpr std::size_t random_steps = 6;  // up to the end

constexpr Duration usual_step = std::chrono::milliseconds(20);

PullEngineOptions engine_options(const PaceOptions& options, std::uint64_t seed) {
  PullEngineOptions engine;
  engine.staleness = options.staleness;
  engine.firewall.distance = options.distance;
  engine.seed = seed;
  if (options.ledger) engine.ledger_factor = options.factor;
  engine.block_shares.assign(options.blocks, 1.0 / options.blocks);
  return engine;
}

TrainerOptions trainer_options(const PaceOptions& options) {
  TrainerOptions trainer;
  trainer.block_shares.assign(options.blocks, 1.0 / options.blocks);
  return trainer;
}

GuardedInterpolation constant(double factor) {
  return GuardedInterpolation(interpolation_registry().make("constant", {{"value", factor}}), 0.5);
}

}  // namespace

PaceCluster::Node::Node(const PaceOptions& options, std::size_t rank, std::uint64_t process)
    : incarnation(process),
      random(derive_seed(options.seed, {rank, process})),
      engine(engine_options(options, derive_seed(options.seed, {rank, process, 1})),
             peer_names(rank, options.nodes)),
      trainer(trainer_options(options), constant(options.factor), random),
      values(random_steps + options.random_walks, 0.0),
      difference(values.size(), 0.0) {
  trainer.replace(0, 1);
  for (std::size_t d = initial; d < random_steps; ++d) values[d] = random.normal(0, 1);
  snapshot = values;
}

PaceCluster::PaceCluster(PaceOptions options) : options_(options), groups_(options.nodes, 0) {
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    nodes_.push_back(std::make_unique<Node>(options_, i, 1));
    const double slowdown = i == 0 ? options_.slowdown : 1;
    const double part = nodes_[i]->random.uniform(0, 1) * slowdown;
    schedule(i, std::chrono::duration_cast<Duration>(usual_step * part), true);
  }
}

void PaceCluster::schedule(std::size_t node, Duration after, bool step) {
  events_.push({now_ + after, order_++, node, nodes_[node]->life, step});
}

void PaceCluster::take_next_event() {
  const Event event = events_.top();
  events_.pop();
  now_ = event.at;
  if (event.life != nodes_[event.node]->life) return;
  if (event.step) {
    step(event.node);
  } else {
    pull(event.node);
  }
}

void PaceCluster::run(double steps) {
  const TimePoint end = now_ + std::chrono::duration_cast<Duration>(usual_step * steps);
  while (events_.top().at <= end) take_next_event();
  now_ = end;
}

void PaceCluster::add_unit_at(std::uint64_t step) {
  while (nodes_[0]->steps < step) take_next_event();
  nodes_[0]->values[unit] += 1;
}

void PaceCluster::step(std::size_t index) {
  Node& node = *nodes_[index];
  const double slowdown = index == 0 ? options_.slowdown : 1;
  double length = slowdown * node.random.uniform(0.9, 1.1);
  if (options_.pause_chance > 0 && node.random.bernoulli(options_.pause_chance))
    length += options_.pause;
  const Duration time = std::chrono::duration_cast<Duration>(usual_step * length);
  schedule(index, time, true);
  if (node.frozen) return;
  absorb(node);
  node.trainer.step_begins(now_);
  const std::uint64_t version = node.published.version + 1;
  node.published = node.trainer.publish();
  node.published.version = version;
  node.snapshot = node.values;
  const auto fresh_for = node.trainer.fresh_for();
  node.fresh_until = fresh_for ? now_ + *fresh_for : TimePoint::max();
  ++node.steps;
  if (!node.pulling && node.calls) {
    const RoundSpec round = node.trainer.plan_pull(node.random);
    node.trainer.began(round);
    node.pulling = true;
    node.engine.begin(round);
    pull(index);
  }
  node.values[constant_gradient] += 1;
  for (std::size_t d = random_steps; d < dimensions(); ++d)
    node.values[d] += node.random.normal(0, 1);
  node.trainer.end_step(node.pulling, {});
}

void PaceCluster::absorb(Node& node) {
  if (!node.arrival) return;
  const Arrival arrival = *std::exchange(node.arrival, std::nullopt);
  if (node.trainer.absorb(arrival, {}, now_) != Absorbed::blend) return;
  const double factor = node.trainer.blend(arrival, 0) / options_.blocks;
  for (std::size_t d = 0; d < dimensions(); ++d) node.values[d] += factor * node.difference[d];
  ++node.blends;
  node.clipped += arrival.factor_scale < 1 ? 1 : 0;
}

void PaceCluster::pull(std::size_t index) {
  Node& node = *nodes_[index];
  while (true) {
    PullEngine::Action action = node.engine.next(node.published.clock, now_);
    if (const auto* wait = std::get_if<PullEngine::Wait>(&action)) {
      schedule(index, wait->time, false);
      return;
    }
    if (const auto* asked = std::get_if<PullEngine::Ask>(&action)) {
      const Offer offer = ask(index, *asked);
      node.engine.settle(answer_of(node.engine, *asked, offer, node.published), false, false, now_);
      node.engine.take_log();
      continue;
    }
    node.pulling = false;
    node.arrival = std::move(std::get<Arrival>(action));
    return;
  }
}

bool PaceCluster::reaches(std::size_t from, std::size_t to) const {
  const auto is_hidden = [this](std::size_t node) { return node >= size() - hidden_; };
  return nodes_[to]->callable && groups_[from] == groups_[to] &&
         (!is_hidden(to) || is_hidden(from));
}

Offer PaceCluster::ask(std::size_t index, const PullEngine::Ask& ask) {
  Node& node = *nodes_[index];
  const std::size_t target = node_of(index, ask.peer);
  Node& peer = *nodes_[target];
  Offer offer;
  if (!reaches(index, target)) {
    offer.failure = PeerFailure::unreachable;
    return offer;
  }
  peer.engine.called(node_name(index), node.incarnation);
  if (ask.taken) peer.engine.stated(node_name(index), node.incarnation, *ask.taken);
  offer.incarnation = peer.incarnation;
  offer.keeps_ledger = options_.ledger;
  offer.progress = peer.published;
  offer.finite = !peer.spoilt;
  const bool known =
      ask.known_incarnation == peer.incarnation && ask.known_version == peer.published.version;
  if (options_.fresh_only && ask.taken && !known && now_ > peer.fresh_until) {
    offer.failure = PeerFailure::not_fresh;
    return offer;
  }
  for (std::size_t d = 0; d < dimensions(); ++d) {
    node.difference[d] = peer.snapshot[d] - node.snapshot[d];
    offer.squared_distance += node.difference[d] * node.difference[d];
  }
  return offer;
}

void PaceCluster::cut_off(std::size_t node, bool callable, bool calls) {
  nodes_[node]->callable = callable;
  nodes_[node]->calls = calls;
}

void PaceCluster::freeze(std::size_t node, bool frozen) {
  nodes_[node]->frozen = frozen;
}

void PaceCluster::spoil(std::size_t node, bool spoilt) {
  nodes_[node]->spoilt = spoilt;
}

void PaceCluster::restart(std::size_t index) {
  auto made = std::make_unique<Node>(options_, index, nodes_[index]->incarnation + 1);
  made->life = nodes_[index]->life + 1;
  made->steps = nodes_[index]->steps;
  made->values = made->snapshot = nodes_[1]->values;
  made->trainer.replace(nodes_[1]->trainer.clock(), 1);
  made->published = nodes_[1]->published;
  nodes_[index] = std::move(made);
  schedule(index, {}, true);
}

double PaceCluster::kept() const {
  double sum = 0;
  for (const auto& node : nodes_) sum += node->values[unit];
  return sum;
}

double PaceCluster::clocks() const {
  double sum = 0;
  for (const auto& node : nodes_) sum += node->trainer.clock();
  return sum;
}

double PaceCluster::steps() const {
  double sum = 0;
  for (const auto& node : nodes_) sum += static_cast<double>(node->steps);
  return sum;
}

double PaceCluster::moved_rate() const {
  double moved = 0;
  for (const auto& node : nodes_) moved += node->values[constant_gradient];
  return moved / steps();
}

double PaceCluster::blends() const {
  double blends = 0, steps = 0;
  for (const auto& node : nodes_) {
    blends += static_cast<double>(node->blends);
    steps += static_cast<double>(node->steps - node->counted_from);
  }
  return blends / steps;
}

double PaceCluster::blends(std::size_t index) const {
  const Node& node = *nodes_[index];
  return static_cast<double>(node.blends) / static_cast<double>(node.steps - node.counted_from);
}

double PaceCluster::clipped() const {
  double clipped = 0, blends = 0;
  for (const auto& node : nodes_) {
    clipped += static_cast<double>(node->clipped);
    blends += static_cast<double>(node->blends);
  }
  return clipped / blends;
}

void PaceCluster::count_blends_anew() {
  for (const auto& node : nodes_) {
    node->blends = node->clipped = 0;
    node->counted_from = node->steps;
  }
}

std::size_t PaceCluster::dimensions() const {
  return random_steps + options_.random_walks;
}

double PaceCluster::variance(std::size_t first, std::size_t last) const {
  double sum = 0;
  for (std::size_t d = first; d < last; ++d) {
    double mean = 0;
    for (const auto& node : nodes_) mean += node->values[d] / static_cast<double>(size());
    for (const auto& node : nodes_) sum += (node->values[d] - mean) * (node->values[d] - mean);
  }
  return sum / static_cast<double>((last - first) * size());
}

void PaceCluster::restore_initial_values() {
  for (const auto& node : nodes_) {
    for (std::size_t d = initial; d < random_steps; ++d)
      node->values[d] = node->random.normal(0, 1);
  }
}

double PaceCluster::initial_variance() const {
  return variance(initial, random_steps);
}

double PaceCluster::disagreement() const {
  return variance(random_steps, dimensions());
}

}  // namespace dpwa::test
