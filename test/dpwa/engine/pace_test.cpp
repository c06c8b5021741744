// What the nodes' paces do to the mean of all nodes. The bars are means of many runs; the figures
// are in docs/ALGORITHMS.md.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/world/gossip_cluster.h"
#include "test/world/seeds.h"

namespace dpwa::world::testing {
namespace {

constexpr Duration usual_step = std::chrono::milliseconds(20);

struct PaceOptions : GossipOptions {
  PaceOptions() {
    // A few numbers lie further apart than a model, so the firewall acts only where a test says so.
    pulls.firewall.distance = DistancePolicy::warn;
    timeout = std::chrono::milliseconds(500);
    steps_to_checkpoint = 0;
  }
  std::size_t nodes = 4;
  std::uint64_t seed = 1;
  double slowdown = 1;      // of node 0: its steps take so many times as long as the others'
  double pause_chance = 0;  // of each step of any node: it takes `pause` usual steps more
  double pause = 0;
  std::size_t random_walks = 4;  // the more, the more of a distance is noise, as of a model
};

// Places of the parameters of a model by which the averaging can be judged.
constexpr std::size_t unit = 0;               // that node 0 adds once
constexpr std::size_t constant_gradient = 1;  // 1 a step
constexpr std::size_t initial_values = 2;     // four of them
constexpr std::size_t random_steps = 6;       // up to the end

class PacedNode : public Conduct {
 public:
  explicit PacedNode(const PaceOptions& options) : options_(options) { begins_at_once = true; }

  bool callable = true;
  std::optional<std::vector<std::string>> called_by;  // by these alone
  bool spoilt = false;                                // what it sends is not finite
  std::uint64_t unit_at = 0;                          // the step that adds the unit; 0: none
  std::uint64_t steps = 0, blends = 0, clipped = 0, counted_from = 0;

  double blends_per_step() const {
    return static_cast<double>(blends) / static_cast<double>(steps - counted_from);
  }

  Model initial(Random& random) override {
    Model model{.values = std::vector<double>(random_steps + options_.random_walks), .origin = 1};
    draw_initial_values(model, random);
    return model;
  }
  static void draw_initial_values(Model& model, Random& random) {
    for (std::size_t d = initial_values; d < random_steps; ++d)
      model.values[d] = random.normal(0, 1);
  }
  Duration next_step(Random& random) override {
    const bool pauses = options_.pause_chance > 0 && random.bernoulli(options_.pause_chance);
    const auto more = pauses ? usual_step * options_.pause : Duration::zero() * 1.0;
    return Conduct::next_step(random) + std::chrono::duration_cast<Duration>(more);
  }
  void train(Model& model, Random& random) override {
    if (++steps == unit_at) model.values[unit] += 1;
    model.values[constant_gradient] += 1;
    for (std::size_t d = random_steps; d < model.values.size(); ++d)
      model.values[d] += random.normal(0, 1);
  }
  std::optional<PeerFailure> turns_away(const std::string& from) override {
    const bool hears = callable && (!called_by || std::ranges::count(*called_by, from) > 0);
    return hears ? std::nullopt : std::optional(PeerFailure::unreachable);
  }
  std::optional<Duration> answers(const GossipQuery&, GossipReply& reply) override {
    if (spoilt && reply.snapshot) {
      Snapshot sent = *reply.snapshot;
      sent.model.values.front() = std::numeric_limits<double>::quiet_NaN();
      reply.snapshot = std::make_shared<const Snapshot>(std::move(sent));
    }
    return Duration::zero();
  }
  void blended(const Arrival& arrival) override {
    ++blends;
    clipped += arrival.factor_scale < 1 ? 1 : 0;
  }

 private:
  const PaceOptions options_;
};

// Nodes of different paces that train from the first moment.
class PaceCluster : public GossipCluster<PacedNode> {
 public:
  explicit PaceCluster(const PaceOptions& options) : GossipCluster(options.seed, options) {
    for (std::size_t i = 0; i < options.nodes; ++i) add(options);
    node(0).step_time = std::chrono::duration_cast<Duration>(usual_step * options.slowdown);
    start_all();
  }

  // Until a node of the usual pace has made so many steps more.
  void run(double steps) {
    GossipCluster::run(std::chrono::duration_cast<Duration>(usual_step * steps));
  }
  void restart(std::size_t index) {  // a new process, with the weights of node 1
    node(index).kept = {member(1).model(), member(1).clock(), 1, 0};
    world().kill(index);
    world().start(index);
    node(index).blends = node(index).clipped = 0;
    node(index).counted_from = node(index).steps;
  }
  void count_blends_anew() {
    for (const auto& node : nodes()) {
      node->blends = node->clipped = 0;
      node->counted_from = node->steps;
    }
  }
  void restore_initial_values() {
    Random random(options().names.size());
    for (std::size_t i = 0; i < size(); ++i)
      PacedNode::draw_initial_values(member(i).model(), random);
  }

  double sum_of(std::size_t place) const {
    double sum = 0;
    for (std::size_t i = 0; i < size(); ++i) sum += member(i).model().values[place];
    return sum;
  }
  double clocks() const {
    double sum = 0;
    for (std::size_t i = 0; i < size(); ++i) sum += member(i).clock();
    return sum;
  }
  double steps() const { return total(&PacedNode::steps); }
  double rate() const { return clocks() / steps(); }
  double blends() const {
    return total(&PacedNode::blends) / (steps() - total(&PacedNode::counted_from));
  }
  double clipped() const { return total(&PacedNode::clipped) / total(&PacedNode::blends); }
  double initial_variance() const { return variance(initial_values, random_steps); }
  // Variance of the random steps' sum.
  double disagreement() const { return variance(random_steps, member(0).model().values.size()); }

 private:
  double total(std::uint64_t PacedNode::*count) const {
    double sum = 0;
    for (const auto& node : nodes()) sum += static_cast<double>((*node).*count);
    return sum;
  }
  double variance(std::size_t first, std::size_t last) const {
    const auto count = static_cast<double>(size());
    double sum = 0;
    for (std::size_t d = first; d < last; ++d) {
      const double mean = sum_of(d) / count;
      for (std::size_t i = 0; i < size(); ++i)
        sum += std::pow(member(i).model().values[d] - mean, 2);
    }
    return sum / (static_cast<double>(last - first) * count);
  }
};

constexpr int many_runs = 100;

struct Figures {
  double kept = 0;   // of a unit that the slow node adds after 100 of its steps
  double rate = 0;   // clock / steps
  double moved = 0;  // the same by a constant gradient
  double blends = 0;
  double clipped = 0;  // of the blends
};

PaceOptions options_of(int run, std::size_t nodes, double slowdown, bool ledger) {
  PaceOptions options;
  options.nodes = nodes;
  options.slowdown = slowdown;
  options.ledger = ledger;
  options.seed = 1000 + static_cast<std::uint64_t>(run);
  return options;
}

// Means over the runs.
Figures figures_of(PaceOptions options, int runs = many_runs) {
  Figures mean;
  for (int run = 0; run < runs; ++run) {
    options.seed = 1000 + static_cast<std::uint64_t>(run);
    PaceCluster cluster(options);
    cluster.node(0).unit_at = 100;
    cluster.run(220 * options.slowdown);
    mean.kept += cluster.sum_of(unit) / runs;
    mean.rate += cluster.rate() / runs;
    mean.moved += cluster.sum_of(constant_gradient) / cluster.steps() / runs;
    mean.blends += cluster.blends() / runs;
    mean.clipped += cluster.clipped() / runs;
  }
  MESSAGE(options.nodes << " nodes, one x" << options.slowdown
                        << std::string(options.ledger ? ", ledger" : "") << ", "
                        << options.random_walks << " random walks: kept " << mean.kept
                        << ", clock/steps " << mean.rate << ", moved/steps " << mean.moved
                        << ", blends/step " << mean.blends << ", clipped " << mean.clipped);
  return mean;
}

Figures figures_of(std::size_t nodes, double slowdown, bool ledger, int runs = many_runs) {
  return figures_of(options_of(0, nodes, slowdown, ledger), runs);
}

struct Equals {
  double blends = 0, contraction = 0, disagreement = 0;
};

// Means over the runs, all nodes at one pace. `contraction`: V after 10 steps / V before, a step.
Equals equals_of(std::size_t nodes, bool ledger) {
  Equals mean;
  constexpr int many = 2 * many_runs;
  for (int run = 0; run < many; ++run) {
    PaceOptions options = options_of(run, nodes, 1, ledger);
    options.random_walks = 32;
    PaceCluster cluster(options);
    cluster.run(40);  // what the slack allows at first
    cluster.restore_initial_values();
    const double before = cluster.initial_variance();
    cluster.run(10);
    mean.contraction += std::pow(cluster.initial_variance() / before, 0.1) / many;
    cluster.run(150);
    mean.blends += cluster.blends() / many;
    mean.disagreement += cluster.disagreement() / many;
  }
  MESSAGE(nodes << " nodes" << std::string(ledger ? ", ledger" : "") << ": blends/step "
                << mean.blends << ", contraction " << mean.contraction << ", disagreement "
                << mean.disagreement);
  return mean;
}

// Variance over the nodes of random steps, 1,000 usual steps after the start; the mean of the runs.
double disagreement_of(std::size_t nodes, double slowdown, bool ledger) {
  double mean = 0;
  for (int run = 0; run < many_runs; ++run) {
    PaceCluster cluster(options_of(run, nodes, slowdown, ledger));
    cluster.run(1000);
    mean += cluster.disagreement() / many_runs;
  }
  MESSAGE(nodes << " nodes, one x" << slowdown << std::string(ledger ? ", ledger" : "")
                << ": disagreement after 1,000 steps " << mean);
  return mean;
}

// Clock / steps and blends from the construction on.
class Interval {
 public:
  explicit Interval(PaceCluster& cluster)
      : cluster_(cluster), clocks_(cluster.clocks()), steps_(cluster.steps()) {
    cluster.count_blends_anew();
  }
  double rate() const { return (cluster_.clocks() - clocks_) / (cluster_.steps() - steps_); }

 private:
  PaceCluster& cluster_;
  const double clocks_, steps_;
};

// The bars of the clocks, which four nodes without the ledger miss when one is four times slower:
// 0.83 to 0.88.
void keeps_pace(const Interval& interval) {
  CHECK(interval.rate() > 0.97);
  CHECK(interval.rate() < 1.04);
}

PaceOptions one_is_slower() {
  PaceOptions options;
  options.slowdown = 4;  // node 0
  return options;
}

TEST_CASE("the ledger keeps what a slow node adds, and the pace of the clocks") {
  for (const std::size_t nodes : {4, 8}) {
    for (const double slowdown : {1.0, 2.0, 4.0, 16.0}) {
      CAPTURE(nodes);
      CAPTURE(slowdown);
      const Figures figures = figures_of(nodes, slowdown, true);
      CHECK(figures.kept > 0.85);
      CHECK(figures.kept < 1.15);
      CHECK(figures.rate > 0.97);
      CHECK(figures.rate < 1.04);
      CHECK(figures.moved == doctest::Approx(figures.rate).epsilon(0.01));
    }
  }
}

// The others clip what they take of the slow node, which clips nothing, and blends them whole. The
// fewer random walks, the more of a distance is the lag of the slow node.
TEST_CASE(
    "what the firewall clips of a slow node is taken later, so that it counts as the others") {
  const auto cases = {std::pair(4, 4), std::pair(8, 32)};
  for (const auto& [nodes, walks] : cases) {
    CAPTURE(nodes);
    CAPTURE(walks);
    PaceOptions options = options_of(0, static_cast<std::size_t>(nodes), 16, true);
    options.pulls.firewall.distance = DistancePolicy::clip;
    options.random_walks = static_cast<std::size_t>(walks);
    const Figures figures = figures_of(options);
    CHECK(figures.clipped > 0.01);  // of all blends; those of the slow node are a sixteenth
    CHECK(figures.kept > 0.85);
    CHECK(figures.kept < 1.2);
    CHECK(figures.rate > 0.97);
    CHECK(figures.rate < (nodes == walks ? 1.08 : 1.04));
    CHECK(figures.moved == doctest::Approx(figures.rate).epsilon(0.01));
    CHECK(figures.blends > 0.93);
  }
}

// A few nodes ask the same peer often. A version that was blended is not blended again, and of what
// is left no age may be missing.
TEST_CASE("among two or three nodes the clocks keep the pace, and few pulls find nothing new") {
  const Figures pair = figures_of(2, 1, true);
  CHECK(pair.rate > 0.98);
  CHECK(pair.rate < 1.03);
  CHECK(pair.blends > 0.86);
  const Figures three = figures_of(3, 16, true);
  CHECK(three.rate > 0.98);
  CHECK(three.rate < 1.02);
  CHECK(three.blends > 0.86);
}

TEST_CASE("without the ledger a slow node pulls the others to itself") {
  const Figures figures = figures_of(4, 4, false);
  CHECK(figures.kept > 1.7);
  CHECK(figures.rate < 0.88);
}

TEST_CASE("among nodes of one pace the ledger costs hardly a blend") {
  for (const std::size_t nodes : {4, 8}) {
    CAPTURE(nodes);
    const Equals with = equals_of(nodes, true);
    const Equals without = equals_of(nodes, false);
    CHECK(with.blends > 0.95 * without.blends);
    CHECK(with.contraction < 1.03 * without.contraction);
    CHECK(with.disagreement < 1.03 * without.disagreement);
  }
}

TEST_CASE("beside a slow node the ledger lets the nodes lie a little further apart") {
  for (const std::size_t nodes : {4, 8}) {
    for (const double slowdown : {4.0, 16.0}) {
      CAPTURE(nodes);
      CAPTURE(slowdown);
      const double without = disagreement_of(nodes, slowdown, false);
      CHECK(disagreement_of(nodes, slowdown, true) < 1.4 * without);
    }
  }
}

TEST_CASE("nodes that pause now and then do not hold the clocks back") {
  // One step in twenty takes 20 usual steps more, as on a machine with too few processors.
  const auto rate = [](bool fresh_only) {
    double mean = 0;
    for (int run = 0; run < many_runs; ++run) {
      PaceOptions options;
      options.nodes = 8;
      options.fresh_only = fresh_only;
      options.pause_chance = 0.05;
      options.pause = 20;
      options.seed = 1000 + static_cast<std::uint64_t>(run);
      PaceCluster cluster(options);
      cluster.run(600);
      mean += cluster.rate() / many_runs;
    }
    MESSAGE("8 nodes that pause" << std::string(fresh_only ? ", fresh snapshots only" : "")
                                 << ": clock/steps " << mean);
    return mean;
  };
  CHECK(rate(true) > 0.97);
  CHECK(rate(false) < 0.85);
}

TEST_CASE("among nodes that all pause most of the time, each takes what there is now and then") {
  PaceOptions options;
  options.pause_chance = 0.2;
  options.pause = 400;
  PaceCluster cluster(options);
  cluster.run(100000);
  for (std::size_t node = 0; node < cluster.size(); ++node)
    CHECK(cluster.node(node).blends_per_step() > 0.05);
}

TEST_CASE("pulls of blocks count with their share of the model") {
  PaceOptions options;
  options.slowdown = 4;
  options.trainer.block_shares.assign(4, .25);
  double rate = 0;
  for (options.seed = 1; options.seed <= 20; ++options.seed) {
    PaceCluster cluster(options);
    cluster.run(2000);
    rate += cluster.rate() / 20;
  }
  CHECK(rate > 0.97);
  CHECK(rate < 1.04);
}

TEST_CASE("a node that can call and cannot be called is not starved") {
  for (const std::size_t nodes : {2, 4}) {
    CAPTURE(nodes);
    PaceOptions options;
    options.nodes = nodes;
    PaceCluster cluster(options);
    cluster.node(0).callable = false;
    cluster.run(400);
    cluster.count_blends_anew();
    cluster.run(400);
    CHECK(cluster.node(0).blends_per_step() > (nodes == 2 ? 0.7 : 0.9));
  }
}

TEST_CASE("nodes that only each other can call stay a part of the whole") {
  for (const std::size_t hidden : {2, 3}) {
    CAPTURE(hidden);
    PaceOptions options;
    PaceCluster cluster(options);
    const auto& names = cluster.options().names;
    for (std::size_t node = cluster.size() - hidden; node < cluster.size(); ++node)
      cluster.node(node).called_by = {names.end() - static_cast<std::ptrdiff_t>(hidden),
                                      names.end()};
    cluster.run(4000);
    CHECK(cluster.disagreement() < 10);  // were they apart: several hundred
    for (std::size_t node = cluster.size() - hidden; node < cluster.size(); ++node)
      CHECK(cluster.node(node).blends_per_step() > 0.9);
  }
}

TEST_CASE("a node that can be called and does not call starves nobody, and drags nobody along") {
  PaceOptions options;
  PaceCluster cluster(options);
  cluster.node(0).calls = false;
  cluster.run(200);
  cluster.node(0).unit_at = cluster.node(0).steps + 1;
  cluster.count_blends_anew();
  cluster.run(1000);
  for (std::size_t node = 1; node < cluster.size(); ++node)
    CHECK(cluster.node(node).blends_per_step() > 0.9);
  CHECK(cluster.sum_of(unit) < 2);  // without the ledger: 4, of the other three as of itself
}

// Its usual lag is 16 to 21 steps, so the others refuse nearly all that it has.
TEST_CASE("a node that is too slow for max_staleness is not starved") {
  PaceOptions options;
  options.slowdown = 16;
  options.pulls.staleness.max_staleness = 5;
  PaceCluster cluster(options);
  cluster.run(400);
  cluster.count_blends_anew();
  cluster.run(4000);
  for (std::size_t node = 0; node < cluster.size(); ++node)
    CHECK(cluster.node(node).blends_per_step() > 0.9);
}

TEST_CASE("a frozen node costs the others no blends, and is taken up again") {
  PaceCluster cluster(one_is_slower());
  cluster.run(200);
  cluster.node(1).stands_still = true;
  cluster.run(500);
  cluster.count_blends_anew();
  cluster.run(500);
  for (const std::size_t node : {0, 2, 3}) CHECK(cluster.node(node).blends_per_step() > 0.85);
  cluster.node(1).stands_still = false;
  cluster.run(50);
  const Interval after(cluster);
  cluster.run(2000);
  keeps_pace(after);
  CHECK(cluster.node(1).blends_per_step() > 0.9);
  CHECK(cluster.disagreement() < 10);
}

// A node that sends NaN is hardly pulled from. It pulls less often itself, until its accounts have
// no effect.
TEST_CASE("a node that sends NaN costs the others no blends, and takes part again") {
  PaceCluster cluster(one_is_slower());
  cluster.run(200);
  cluster.node(1).spoilt = true;
  cluster.count_blends_anew();
  cluster.run(1000);
  CHECK(cluster.node(1).blends_per_step() > 0.15);
  for (const std::size_t node : {0, 2, 3}) CHECK(cluster.node(node).blends_per_step() > 0.85);
  cluster.node(1).spoilt = false;
  cluster.run(2000);
  const Interval after(cluster);
  cluster.run(2000);
  keeps_pace(after);
  for (std::size_t node = 0; node < cluster.size(); ++node)
    CHECK(cluster.node(node).blends_per_step() > 0.9);
  CHECK(cluster.disagreement() < 10);
}

TEST_CASE("a restarted node begins with even accounts") {
  PaceOptions options;
  options.slowdown = 4;
  PaceCluster cluster(options);
  for (int i = 0; i < 20; ++i) {
    cluster.run(100);
    cluster.restart(static_cast<std::size_t>(i % 4));
  }
  const double clocks = cluster.clocks(), steps = cluster.steps();
  cluster.count_blends_anew();
  cluster.run(1000);
  const double rate = (cluster.clocks() - clocks) / (cluster.steps() - steps);
  CHECK(rate > 0.95);
  CHECK(rate < 1.05);
  CHECK(cluster.blends() > 0.9);
}

TEST_CASE("the halves of a healed partition agree again at full pace") {
  PaceOptions options = one_is_slower();
  options.nodes = 8;
  PaceCluster cluster(options);
  cluster.run(200);
  cluster.world().split([](std::size_t node) { return node < 4; });
  cluster.run(500);
  CHECK(cluster.disagreement() > 10);
  cluster.world().heal();
  cluster.run(300);  // the back-offs end
  const Interval after(cluster);
  cluster.run(2000);
  keeps_pace(after);
  CHECK(cluster.blends() > 0.9);
  CHECK(cluster.disagreement() < 6);
}

// Without the ledger: 0.90.
TEST_CASE("among many nodes the ledger keeps the pace after some steps for each of them") {
  PaceOptions options;
  options.nodes = 128;
  options.slowdown = 16;
  PaceCluster cluster(options);
  cluster.run(20 * 128);
  const Interval after(cluster);
  cluster.run(10 * 128);
  keeps_pace(after);
  CHECK(cluster.blends() > 0.95);
}

// DPWA_WORLD_NODES is another number of them.
TEST_CASE("among a thousand nodes the ledger costs no blends") {
  PaceOptions options;
  options.nodes = number_from("DPWA_WORLD_NODES", 1000);
  options.slowdown = 4;
  PaceCluster cluster(options);
  cluster.run(100);
  MESSAGE(options.nodes << " nodes, 100 steps: " << cluster.world().events() << " events");
  CHECK(cluster.rate() == doctest::Approx(0.99).epsilon(0.01));
  CHECK(cluster.blends() > 0.95);
}

}  // namespace
}  // namespace dpwa::world::testing
