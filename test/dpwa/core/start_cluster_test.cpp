#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dpwa/core/random.h"
#include "dpwa/core/start_rule.h"

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

struct StartingNode {
  Duration arrives = 0ns;
  Duration dies = never;
  std::optional<double> resumed_clock;
  std::uint64_t lineage = 0;  // given: of the checkpoint; later: of the weights it runs with
  double clock = 0;
  bool ready = false;
  Duration began = never;
  std::optional<std::size_t> source;  // of the pull under way
  Duration pull_ends = never;
  Duration next_poll = 0ns;
};

class StartingCluster {
 public:
  StartingCluster(std::vector<StartingNode> nodes, std::uint64_t seed) : nodes_(std::move(nodes)) {
    Random random(seed);
    for (StartingNode& node : nodes_) {
      node.next_poll = node.arrives + tick * static_cast<int>(random.below(poll / tick));
    }
  }

  void run(Duration end) {
    for (Duration now = 0ns; now < end; now += tick) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) advance(i, now);
    }
  }

  std::set<std::uint64_t> lineages(Duration now) const {
    std::set<std::uint64_t> found;
    for (const StartingNode& node : nodes_) {
      if (runs(node, now)) found.insert(node.ready ? node.lineage : 0);
    }
    return found;
  }
  const std::vector<StartingNode>& nodes() const { return nodes_; }
  std::size_t sources() const { return sources_; }

 private:
  static bool runs(const StartingNode& node, Duration now) {
    return node.arrives <= now && now < node.dies;
  }

  std::vector<StartView> views(Duration now) const {
    std::vector<StartView> result;
    for (const StartingNode& node : nodes_) {
      if (!runs(node, now)) {
        result.push_back({PeerStart::unreachable, 0, 0});
      } else if (node.ready) {
        result.push_back({PeerStart::ready, node.clock, node.lineage});
      } else {
        result.push_back({PeerStart::joining, 0, 0});
      }
    }
    return result;
  }

  void make_ready(StartingNode& node, Duration now) {
    node.ready = true;
    node.began = now;
  }

  void advance(std::size_t index, Duration now) {
    StartingNode& node = nodes_[index];
    if (!runs(node, now)) return;
    if (node.ready) {
      node.clock += 0.5;  // trains: a step of 20 ms
      return;
    }
    if (node.source && now >= node.pull_ends) {
      const StartingNode& source = nodes_[*node.source];
      if (runs(source, now)) {
        node.lineage = source.lineage;
        node.clock = source.clock;
        make_ready(node, now);
        return;
      }
      node.source.reset();
    }
    if (node.source || now < node.next_poll) return;
    node.next_poll = now + poll;
    const dpwa::StartDecision decision =
        dpwa::decide_start(views(now), index, node.resumed_clock, now - node.arrives, {10s});
    if (decision.action == StartAction::pull_from) {
      node.source = decision.peer;
      node.pull_ends = now + pull;
    } else if (decision.action == StartAction::begin) {
      if (node.resumed_clock) {
        node.clock = *node.resumed_clock;
      } else {
        ++sources_;
        node.lineage = 1000 + index;  // initial weights of its own
      }
      make_ready(node, now);
    }
  }

  std::vector<StartingNode> nodes_;
  std::size_t sources_ = 0;
};

Duration random_time(Random& random, Duration limit) {
  return tick * static_cast<int>(random.below(static_cast<std::uint64_t>(limit / tick)));
}

}  // namespace

TEST_CASE("nodes that arrive together begin from the first one's weights without the wait") {
  for (std::size_t n = 2; n <= 32; ++n) {
    CAPTURE(n);
    StartingCluster cluster(std::vector<StartingNode>(n), n);
    cluster.run(2s);
    CHECK(cluster.sources() == 1);
    CHECK(cluster.lineages(2s) == std::set<std::uint64_t>{1000});
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
