#include "test/dpwa/engine/start_cluster.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dpwa/base/random.h"

using namespace std::chrono_literals;
using dpwa::Duration;
using dpwa::Random;
using dpwa::test::Conduct;
using dpwa::test::never;
using dpwa::test::poll;
using dpwa::test::pull;
using dpwa::test::StartingCluster;
using dpwa::test::StartingNode;
using dpwa::test::tick;

namespace {

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
    CHECK(cluster.lineages() == std::set<std::uint64_t>{1000});
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
    CHECK(cluster.lineages().size() == 1);
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
    CHECK(cluster.lineages().size() == 1);
    check_common_start(cluster, 10s + 300ms + 2 * poll);
  }
}

TEST_CASE("a first node that joins for ever delays no node beyond the wait") {
  for (const Conduct lie : {Conduct::joins_for_ever, Conduct::gives_nothing}) {
    for (std::size_t n = 3; n <= 16; ++n) {
      CAPTURE(n);
      std::vector<StartingNode> nodes(n);
      nodes[0].conduct = lie;
      StartingCluster cluster(nodes, n);
      cluster.run(12s);
      CHECK(cluster.lineages().size() == 1);
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
    CHECK(cluster.lineages() == std::set<std::uint64_t>{77});
    check_common_start(cluster, 4s, highest);
  }
}

TEST_CASE(
    "most nodes of a file come back with checkpoints and keep them beside new ones that train") {
  Random random(11);
  for (int run = 0; run < 50; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(6);
    for (std::size_t i = 2; i < nodes.size(); ++i) {
      nodes[i].arrives = 12s + random_time(random, 2s);
      nodes[i].resumed_clock = 300;
      nodes[i].lineage = 77;
    }
    StartingCluster cluster(nodes, run);
    cluster.run(30s);
    CHECK(cluster.nodes()[0].began < 12s);
    for (std::size_t i = 2; i < nodes.size(); ++i) CHECK(cluster.nodes()[i].began_at_clock >= 300);
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
    CHECK(cluster.lineages().size() == 1);
    CHECK(cluster.lineages().count(0) == 0);  // nobody is left waiting
  }
}

TEST_CASE("a dead first node delays the start by the wait and no longer") {
  std::vector<StartingNode> nodes(6);
  nodes[0].arrives = never;
  StartingCluster cluster(nodes, 1);
  cluster.run(12s);
  CHECK(cluster.lineages() == std::set<std::uint64_t>{1001});
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
  CHECK(cluster.lineages() == std::set<std::uint64_t>{1001});
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
    CHECK(cluster.lineages().size() == 1);
    CHECK(cluster.lineages().count(0) == 0);
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
    CHECK(cluster.lineages() == std::set<std::uint64_t>{77});
  }
}

TEST_CASE("one node that says the name is taken turns no node away before the wait is over") {
  std::vector<StartingNode> nodes(4);
  nodes[0].conduct = Conduct::refuses_name;
  nodes[2].arrives = nodes[3].arrives = 1500ms;  // longer than the patience with a refusal
  StartingCluster cluster(nodes, 1);
  cluster.run(12s);
  for (std::size_t i = 1; i < 4; ++i) CHECK(cluster.nodes()[i].failure == "");
  CHECK(cluster.lineages() == std::set<std::uint64_t>{1001});
}

TEST_CASE("a node whose name most others refuse ends and says why") {
  std::vector<StartingNode> nodes(6);
  for (std::size_t i = 0; i < 3; ++i) nodes[i].conduct = Conduct::refuses_name;
  nodes[5].arrives = never;
  StartingCluster cluster(nodes, 1);
  cluster.run(900ms);
  CHECK(cluster.nodes()[3].failure == "");
  cluster.run(2s);
  CHECK(cluster.nodes()[3].failure == "node 'w4' was refused: the name is taken");
}

TEST_CASE("with fewer nodes than gossip.min_nodes a node does not begin, and says who is missing") {
  std::vector<StartingNode> nodes(3);
  nodes[1].arrives = nodes[2].arrives = never;
  dpwa::StartUpOptions options;
  options.rule.min_nodes = 2;
  StartingCluster cluster(nodes, 1, options);
  cluster.run(11s);
  CHECK(cluster.nodes()[0].failure.ends_with(
      "(gossip.start_wait_ms) no other node runs, and "
      "gossip.min_nodes requires 2; no answer from 'w2', 'w3'"));
}

TEST_CASE("with some of the nodes that gossip.min_nodes requires, the failure counts them") {
  std::vector<StartingNode> nodes(3);
  nodes[1].arrives = 500ms;  // or it gives up first
  nodes[2].arrives = never;
  dpwa::StartUpOptions options;
  options.rule.min_nodes = 3;
  StartingCluster cluster(nodes, 1, options);
  cluster.run(11s);
  CHECK(
      cluster.nodes()[0].failure.ends_with("(gossip.start_wait_ms) only 2 nodes run, this one "
                                           "included, and gossip.min_nodes requires 3; "
                                           "no answer from 'w3'"));
}

TEST_CASE("a node that is alone says so at its start") {
  std::vector<StartingNode> nodes(3);
  nodes[1].arrives = nodes[2].arrives = never;
  StartingCluster cluster(nodes, 1);
  cluster.run(11s);
  CHECK(cluster.nodes()[0].ready);
  CHECK(std::ranges::count(cluster.lines(), "waiting for 'w2', 'w3'") == 4);
  CHECK(cluster.lines().back().starts_with("started alone, without 'w2', 'w3', after 10"));
}

TEST_CASE("with clip and refuse a joiner leaves weights alone that are far from most others'") {
  using dpwa::DistancePolicy;
  for (const auto policy : {DistancePolicy::warn, DistancePolicy::clip, DistancePolicy::refuse}) {
    for (const std::size_t honest : {2, 3, 7}) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(honest);
      std::vector<StartingNode> nodes(honest + 1);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i].conduct = Conduct::trains;
        nodes[i].lineage = 77;
        nodes[i].resumed_clock = 500;
        nodes[i].weights = 1 + 0.1 * static_cast<double>(i);
      }
      nodes[0].resumed_clock = 900;  // the liar is the one that is ahead
      nodes[0].weights = 100;
      nodes.push_back({});
      dpwa::StartUpOptions options;
      options.firewall.distance = policy;
      StartingCluster cluster(nodes, 1, options);
      cluster.run(5s);
      const StartingNode& joiner = cluster.nodes().back();
      REQUIRE(joiner.ready);
      const bool fooled = policy == DistancePolicy::warn;
      CHECK((joiner.began_with > 50) == fooled);
      CHECK((joiner.began_at_clock > 850) == fooled);
    }
  }
}

TEST_CASE("a joiner takes nothing from one node of a lineage of its own among honest ones") {
  for (const std::size_t honest : {2, 6}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      CAPTURE(honest);
      CAPTURE(seed);
      std::vector<StartingNode> nodes(honest + 1);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i].conduct = Conduct::trains;
        nodes[i].lineage = i == 0 ? 78 : 77;  // the first one lies
        nodes[i].resumed_clock = i == 0 ? 1e6 : 500;
        nodes[i].weights = i == 0 ? 100 : 1;
      }
      nodes.push_back({});
      StartingCluster cluster(nodes, seed);
      cluster.run(5s);
      const StartingNode& joiner = cluster.nodes().back();
      REQUIRE(joiner.ready);
      CHECK(joiner.began_with < 2);
      CHECK(joiner.began_at_clock < 1000);
    }
  }
}
