#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/rules/start_rule.h"

// Whole clusters starting under the start rule on a virtual clock. Nodes look at each other every
// `poll`, each at a phase of its own; a full pull takes `pull` and fails if its source dies
// meanwhile.

using namespace std::chrono_literals;
using dpwa::Duration;
using dpwa::PeerStart;
using dpwa::Random;
using dpwa::StartAction;
using dpwa::StartView;

namespace {

constexpr Duration never = 24h;
constexpr Duration tick = 10ms;
constexpr Duration poll = 100ms;
constexpr Duration pull = 50ms;

// What a node does with the start rule, or in its place.
enum class Conduct { honest, joins_for_ever, gives_nothing };

struct StartingNode {
  Duration arrives = 0ns;
  Duration dies = never;
  std::optional<double> resumed_clock;
  std::uint64_t lineage = 0;  // given: of the checkpoint; later: of the weights it has
  Conduct conduct = Conduct::honest;

  double clock = 0;
  bool has_weights = false;
  bool resumed = false;  // and still on its own weights
  bool looked = false;   // shows its weights only then
  bool ready = false;
  Duration began = never;
  double began_at_clock = -1;
  std::optional<std::size_t> source;  // of the pull under way
  Duration pull_ends = never;
  Duration next_poll = 0ns;
  std::vector<bool> together{};
  std::vector<unsigned> failed_pulls{};
  std::vector<unsigned> taken_over{};
};

class StartingCluster {
 public:
  StartingCluster(std::vector<StartingNode> nodes, std::uint64_t seed) : nodes_(std::move(nodes)) {
    Random random(seed);
    for (StartingNode& node : nodes_) {
      node.next_poll = node.arrives + tick * static_cast<int>(random.below(poll / tick));
      node.together.resize(nodes_.size());
      node.failed_pulls.resize(nodes_.size());
      node.taken_over.resize(nodes_.size());
      node.has_weights = node.resumed = node.resumed_clock.has_value();
      node.clock = node.resumed_clock.value_or(0);
    }
  }

  void run(Duration end) {
    for (Duration now = 0ns; now < end; now += tick) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) advance(i, now);
    }
  }

  // Of honest nodes; 0: one that still waits.
  std::set<std::uint64_t> lineages(Duration now) const {
    std::set<std::uint64_t> found;
    for (const StartingNode& node : nodes_) {
      if (runs(node, now) && node.conduct == Conduct::honest)
        found.insert(node.ready ? node.lineage : 0);
    }
    return found;
  }
  const std::vector<StartingNode>& nodes() const { return nodes_; }
  std::size_t sources() const { return sources_; }

 private:
  static bool runs(const StartingNode& node, Duration now) {
    return node.arrives <= now && now < node.dies;
  }

  std::vector<StartView> views(std::size_t self, Duration now) {
    std::vector<StartView> result;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const StartingNode& node = nodes_[i];
      StartView view{PeerStart::unreachable};
      if (runs(node, now)) {
        view = {node.ready                        ? PeerStart::ready
                : node.has_weights && node.looked ? PeerStart::waiting
                                                  : PeerStart::joining,
                node.clock, node.lineage};
      }
      if (!node.ready || !runs(node, now)) nodes_[self].together[i] = true;
      view.together = nodes_[self].together[i];
      view.failed_pulls = nodes_[self].failed_pulls[i];
      view.taken_over = nodes_[self].taken_over[i];
      result.push_back(view);
    }
    return result;
  }

  // Whether the pull under way has ended.
  bool end_pull(StartingNode& node, Duration now) {
    const StartingNode& source = nodes_[*node.source];
    if (now < node.pull_ends) return false;
    if (runs(source, now) && source.conduct == Conduct::honest) {
      ++node.taken_over[*node.source];
      node.lineage = source.lineage;
      node.clock = source.clock;
      node.has_weights = true;
      node.resumed = false;
    } else {
      ++node.failed_pulls[*node.source];
    }
    node.source.reset();
    return true;
  }

  void advance(std::size_t index, Duration now) {
    StartingNode& node = nodes_[index];
    if (!runs(node, now) || node.conduct == Conduct::joins_for_ever) return;
    if (node.conduct == Conduct::gives_nothing) {
      node.has_weights = node.looked = true;
      node.lineage = 1;
      return;
    }
    if (node.ready) {
      node.clock += 0.5;  // trains: a step of 20 ms
      return;
    }
    if (node.source ? !end_pull(node, now) : now < node.next_poll) return;
    node.next_poll = now + poll;
    node.looked = true;
    std::optional<dpwa::StartWeights> own;
    if (node.has_weights) own = {node.clock, node.lineage, node.resumed};
    const Duration elapsed = now - node.arrives;
    const dpwa::StartDecision decision =
        dpwa::decide_start(views(index, now), index, own, elapsed, {.wait = 10s, .limit = 20s});
    if (decision.action == StartAction::pull_from) {
      node.source = decision.peer;
      const bool hangs = nodes_[decision.peer].conduct == Conduct::gives_nothing;
      node.pull_ends = now + (hangs ? std::max<Duration>(500ms, (10s - elapsed) / 2) : pull);
    } else if (decision.action == StartAction::bring) {
      ++sources_;
      node.lineage = 1000 + index;  // initial weights of its own
      node.has_weights = true;
    } else if (decision.action == StartAction::begin) {
      node.ready = true;
      node.began = now;
      node.began_at_clock = node.clock;
    }
  }

  std::vector<StartingNode> nodes_;
  std::size_t sources_ = 0;
};

Duration random_time(Random& random, Duration limit) {
  return tick * static_cast<int>(random.below(static_cast<std::uint64_t>(limit / tick)));
}

// All honest nodes, with nobody's clock above that with which the first one began.
void check_common_start(const StartingCluster& cluster, Duration latest, double clock = 0) {
  for (const StartingNode& node : cluster.nodes()) {
    if (node.conduct != Conduct::honest || node.arrives == never) continue;
    CHECK(node.began_at_clock == clock);
    CHECK(node.began <= latest);
  }
}

}  // namespace

TEST_CASE("nodes that arrive together begin from the first one's weights without the wait") {
  for (std::size_t n = 2; n <= 32; ++n) {
    CAPTURE(n);
    StartingCluster cluster(std::vector<StartingNode>(n), n);
    cluster.run(2s);
    CHECK(cluster.sources() == 1);
    CHECK(cluster.lineages(2s) == std::set<std::uint64_t>{1000});
    check_common_start(cluster, 1s);
  }
}

TEST_CASE("nodes that arrive within half of the wait all begin at the initial weights") {
  Random random(5);
  for (int run = 0; run < 200; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(2 + random.below(15));
    for (StartingNode& node : nodes) node.arrives = random_time(random, 4500ms);
    Duration last = 0ns;
    for (const StartingNode& node : nodes) last = std::max(last, node.arrives);
    StartingCluster cluster(nodes, run);
    cluster.run(10s);
    CHECK(cluster.lineages(10s).size() == 1);
    check_common_start(cluster, last + 1s);
  }
}

TEST_CASE("a node that never appears holds the others until the wait, and they begin alike") {
  Random random(6);
  for (int run = 0; run < 100; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(3 + random.below(10));
    for (StartingNode& node : nodes) node.arrives = random_time(random, 300ms);
    nodes[random.below(nodes.size())].arrives = never;
    StartingCluster cluster(nodes, run);
    cluster.run(12s);
    CHECK(cluster.lineages(12s).size() == 1);
    check_common_start(cluster, 10s + 300ms + 2 * poll);
  }
}

TEST_CASE("a first node that says for ever that it joins delays nobody beyond the wait") {
  for (const Conduct lie : {Conduct::joins_for_ever, Conduct::gives_nothing}) {
    for (std::size_t n = 3; n <= 16; ++n) {
      CAPTURE(n);
      std::vector<StartingNode> nodes(n);
      nodes[0].conduct = lie;
      StartingCluster cluster(nodes, n);
      cluster.run(12s);
      CHECK(cluster.lineages(12s).size() == 1);
      check_common_start(cluster, 10s + 2 * poll);
    }
  }
}

TEST_CASE("resumed nodes at different clocks all begin at the highest one") {
  Random random(7);
  for (int run = 0; run < 100; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(2 + random.below(10));
    for (StartingNode& node : nodes) {
      node.arrives = random_time(random, 2s);
      node.resumed_clock = 100 + 10 * static_cast<double>(random.below(5));
      node.lineage = 77;
    }
    double highest = 0;
    for (const StartingNode& node : nodes) highest = std::max(highest, *node.resumed_clock);
    StartingCluster cluster(nodes, run);
    cluster.run(5s);
    CHECK(cluster.lineages(5s) == std::set<std::uint64_t>{77});
    check_common_start(cluster, 4s, highest);
  }
}

TEST_CASE("any subset of nodes in any order of arrival ends with one source and one lineage") {
  Random random(1);
  for (int run = 0; run < 300; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(2 + random.below(31));
    bool some = false;
    for (StartingNode& node : nodes) {
      const bool absent = random.bernoulli(0.3);
      node.arrives = absent ? never : random_time(random, random.bernoulli(0.5) ? 1s : 15s);
      some = some || !absent;
    }
    if (!some) nodes.back().arrives = 0ns;
    StartingCluster cluster(nodes, run);
    cluster.run(30s);
    CHECK(cluster.sources() == 1);
    CHECK(cluster.lineages(30s).size() == 1);
    CHECK(cluster.lineages(30s).count(0) == 0);  // nobody is left waiting
  }
}

TEST_CASE("a dead first node delays the start by the wait and no longer") {
  std::vector<StartingNode> nodes(6);
  nodes[0].arrives = never;
  StartingCluster cluster(nodes, 1);
  cluster.run(12s);
  CHECK(cluster.lineages(12s) == std::set<std::uint64_t>{1001});
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    CHECK(cluster.nodes()[i].began >= 10s);
    CHECK(cluster.nodes()[i].began <= 10s + 3 * poll + pull);
  }
}

TEST_CASE("a late first node takes the weights of the running cluster") {
  std::vector<StartingNode> nodes(5);
  nodes[0].arrives = 20s;
  StartingCluster cluster(nodes, 1);
  cluster.run(22s);
  CHECK(cluster.sources() == 1);
  CHECK(cluster.lineages(22s) == std::set<std::uint64_t>{1001});
  CHECK(cluster.nodes()[0].began <= 20s + poll + pull + tick);
}

TEST_CASE("when nodes die while the cluster starts, the living end with one lineage") {
  Random random(2);
  for (int run = 0; run < 300; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(3 + random.below(14));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].arrives = random_time(random, 500ms);
      if (i + 1 < nodes.size() && random.bernoulli(0.4)) {
        nodes[i].dies = nodes[i].arrives + random_time(random, 2s);
      }
    }
    StartingCluster cluster(nodes, run);
    cluster.run(30s);
    CHECK(cluster.lineages(30s).size() == 1);
    CHECK(cluster.lineages(30s).count(0) == 0);
  }
}

TEST_CASE("resumed nodes keep their lineage, and new ones among them take it") {
  Random random(3);
  for (int run = 0; run < 200; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(2 + random.below(15));
    const bool some_are_new = random.bernoulli(0.5);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool is_new = some_are_new && i % 2 == 1;
      nodes[i].arrives = is_new ? 12s + random_time(random, 3s) : random_time(random, 12s);
      if (is_new) continue;
      nodes[i].resumed_clock = 100 + 20 * random.uniform(0, 1);
      nodes[i].lineage = 77;
    }
    StartingCluster cluster(nodes, run);
    cluster.run(30s);
    CHECK(cluster.sources() == 0);
    CHECK(cluster.lineages(30s) == std::set<std::uint64_t>{77});
  }
}
