// How a whole cluster starts: with one lineage, and soon.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "test/support/sanitized.h"
#include "test/world/gossip_cluster.h"

namespace dpwa::world::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration never = 24h;
constexpr Duration tick = 10ms;
constexpr Duration poll = 100ms;  // from one look to the next, about
constexpr Duration pull = 100ms;  // of the whole model, with the look before it

// What a node does in the place of a start.
enum class Lie {
  none,
  joins_for_ever,  // says that it has no weights yet
  gives_nothing,   // says that it has weights, and every pull from it hangs
  refuses_name,    // says that the name of whoever calls it is another's
  trains,          // from the first moment
};

struct StartingNode {
  Duration arrives{};
  Duration dies = never;
  std::optional<double> resumed_clock{};
  std::uint64_t lineage = 0;  // of the checkpoint
  Lie lie = Lie::none;
  double weights = 0;  // a model of one parameter

  bool ready = false;
  Duration began = never;
  double began_at_clock = -1;
  double began_with = 0;
  std::string failure{};
};

class StartingConduct : public Conduct {
 public:
  StartingConduct(StartingNode& node, std::uint64_t origin, const World& world,
                  std::vector<std::string>& lines)
      : node_(node), origin_(origin), world_(world), lines_(lines) {
    step_time = 1s;
    starts = node.lie == Lie::none;
    calls = starts;
    begins_at_once = node.lie == Lie::trains;
    if (node.resumed_clock)
      kept = Kept{
          {.values = {node.weights}, .origin = node.lineage}, *node.resumed_clock, node.lineage, 0};
  }

  Model initial(Random&) override { return {.values = {node_.weights}, .origin = origin_}; }
  void train(Model& model, Random& random) override {
    model.values[0] += 0.01 * random.normal(0, 1);
  }
  std::optional<PeerFailure> turns_away(const std::string&) override {
    return node_.lie == Lie::refuses_name ? std::optional(PeerFailure::rejected) : std::nullopt;
  }
  std::optional<Duration> answers(const GossipQuery& query, GossipReply& reply) override {
    reply.refuses_name = node_.lie == Lie::refuses_name;
    if (reply.refuses_name) reply.detail = "the name is taken";
    if (node_.lie != Lie::gives_nothing) return Duration::zero();
    reply.progress.lineage = 1;
    return query.pull ? std::nullopt : std::optional(Duration::zero());
  }
  void begun(GossipMember& member) override {
    node_.ready = true;
    node_.began = world_.now() - TimePoint();
    node_.began_at_clock = member.clock();
    node_.began_with = member.model().values[0];
  }
  void said(const std::string& line) override { lines_.push_back(line); }
  void cannot_begin(const std::string& why) override { node_.failure = why; }

 private:
  StartingNode& node_;
  const std::uint64_t origin_;
  const World& world_;
  std::vector<std::string>& lines_;
};

GossipOptions without_comparison() {
  GossipOptions options;
  options.pulls.firewall.distance = DistancePolicy::off;
  return options;
}

class StartingCluster : public GossipCluster<StartingConduct> {
 public:
  // Weights are compared with those of others only where `options` say so.
  StartingCluster(std::vector<StartingNode> nodes, std::uint64_t seed,
                  GossipOptions options = without_comparison())
      : GossipCluster(seed, with_waits(std::move(options)), {.delay = 5ms, .jitter = 5ms}),
        starting_(std::move(nodes)) {
    for (std::size_t i = 0; i < starting_.size(); ++i) {
      add(starting_[i], 1000 + i, world(), lines_);
      events_.emplace(starting_[i].arrives, std::pair(i, true));
      events_.emplace(starting_[i].dies, std::pair(i, false));
    }
  }

  void run(Duration end) {  // from where it stopped
    while (events_.begin()->first < end) {
      const auto [at, event] = *events_.begin();
      events_.erase(events_.begin());
      world().run(at - (world().now() - TimePoint()));
      if (event.second) world().start(event.first);
      if (!event.second) world().kill(event.first);
    }
    world().run(end - (world().now() - TimePoint()));
  }

  // The initial weights that the honest nodes descend from; 0: one that still waits.
  std::set<std::uint64_t> origins() {
    std::set<std::uint64_t> found;
    for (std::size_t i = 0; i < size(); ++i) {
      if (starting_[i].lie != Lie::none || !world().runs(i)) continue;
      found.insert(member(i).trains() ? member(i).model().origin : 0);
    }
    return found;
  }
  const std::vector<StartingNode>& starting() const { return starting_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  static GossipOptions with_waits(GossipOptions options) {
    options.timeout = 500ms;
    options.start_wait = 10s;
    options.steps_to_checkpoint = 0;
    return options;
  }

  std::vector<StartingNode> starting_;
  std::vector<std::string> lines_;
  std::multimap<Duration, std::pair<std::size_t, bool>> events_;  // arrivals, and deaths
};

Duration random_time(Random& random, Duration limit) {
  return tick * static_cast<int>(random.below(static_cast<std::uint64_t>(limit / tick)));
}

// All honest nodes, with nobody's clock above that with which the first one began.
void check_common_start(const StartingCluster& cluster, Duration latest, double clock = 0) {
  for (const StartingNode& node : cluster.starting()) {
    if (node.lie != Lie::none || node.arrives == never) continue;
    CHECK(node.began_at_clock == clock);
    CHECK(node.began <= latest);
  }
}

constexpr int fewer = test::sanitized ? 10 : 1;  // runs

TEST_CASE("nodes that arrive together begin from the first one's weights without the wait") {
  for (std::size_t n = 2; n <= 32; ++n) {
    CAPTURE(n);
    StartingCluster cluster(std::vector<StartingNode>(n), n);
    cluster.run(2s);
    CHECK(cluster.checks().shown() == 1);
    CHECK(cluster.origins() == std::set<std::uint64_t>{1000});
    check_common_start(cluster, 1s);
  }
}

TEST_CASE("nodes that arrive within half of the wait all begin at the initial weights") {
  Random random(5);
  for (int run = 0; run < 200 / fewer; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(2 + random.below(15));
    for (StartingNode& node : nodes) node.arrives = random_time(random, 4500ms);
    Duration last = 0ns;
    for (const StartingNode& node : nodes) last = std::max(last, node.arrives);
    StartingCluster cluster(nodes, run);
    cluster.run(10s);
    CHECK(cluster.origins().size() == 1);
    check_common_start(cluster, last + 1s);
  }
}

TEST_CASE("a node that never appears holds the others until the wait, and they begin alike") {
  Random random(6);
  for (int run = 0; run < 100 / fewer; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(3 + random.below(10));
    for (StartingNode& node : nodes) node.arrives = random_time(random, 300ms);
    nodes[random.below(nodes.size())].arrives = never;
    StartingCluster cluster(nodes, run);
    cluster.run(12s);
    CHECK(cluster.origins().size() == 1);
    check_common_start(cluster, 10s + 300ms + 2 * poll);
    for (const StartingNode& node : cluster.starting()) CHECK(node.began >= 10s);
  }
}

TEST_CASE("a first node that joins for ever delays no node beyond the wait") {
  for (const Lie lie : {Lie::joins_for_ever, Lie::gives_nothing}) {
    for (std::size_t n = 3; n <= 16; ++n) {
      CAPTURE(n);
      std::vector<StartingNode> nodes(n);
      nodes[0].lie = lie;
      StartingCluster cluster(nodes, n);
      cluster.run(12s);
      CHECK(cluster.origins().size() == 1);
      check_common_start(cluster, 10s + 2 * poll);
    }
  }
}

TEST_CASE("resumed nodes at different clocks all begin at the highest one") {
  Random random(7);
  for (int run = 0; run < 100 / fewer; ++run) {
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
    CHECK(cluster.origins() == std::set<std::uint64_t>{77});
    check_common_start(cluster, 4s, highest);
  }
}

TEST_CASE(
    "most nodes of a file come back with checkpoints and keep them beside new ones that train") {
  Random random(11);
  for (int run = 0; run < 50 / fewer; ++run) {
    CAPTURE(run);
    std::vector<StartingNode> nodes(6);
    for (std::size_t i = 2; i < nodes.size(); ++i) {
      nodes[i].arrives = 12s + random_time(random, 2s);
      nodes[i].resumed_clock = 300;
      nodes[i].lineage = 77;
    }
    StartingCluster cluster(nodes, run);
    cluster.run(30s);
    CHECK(cluster.starting()[0].began < 12s);
    for (std::size_t i = 2; i < nodes.size(); ++i)
      CHECK(cluster.starting()[i].began_at_clock >= 300);
  }
}

TEST_CASE("any subset of nodes in any order of arrival ends with one lineage") {
  Random random(1);
  int several = 0;  // brought weights at once, of which one kind was taken
  for (int run = 0; run < 300 / fewer; ++run) {
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
    several += cluster.checks().shown() > 1 ? 1 : 0;
    CHECK(cluster.origins().size() == 1);
    CHECK(cluster.origins().count(0) == 0);  // nobody is left waiting
  }
  CHECK(several < 20);
}

TEST_CASE("a dead first node delays the start by the wait and no longer") {
  std::vector<StartingNode> nodes(6);
  nodes[0].arrives = never;
  StartingCluster cluster(nodes, 1);
  cluster.run(12s);
  CHECK(cluster.origins() == std::set<std::uint64_t>{1001});
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    CHECK(cluster.starting()[i].began >= 10s);
    CHECK(cluster.starting()[i].began <= 10s + 3 * poll + pull);
  }
}

TEST_CASE("a late first node takes the weights of the running cluster") {
  std::vector<StartingNode> nodes(5);
  nodes[0].arrives = 20s;
  StartingCluster cluster(nodes, 1);
  cluster.run(22s);
  CHECK(cluster.checks().shown() == 1);
  CHECK(cluster.origins() == std::set<std::uint64_t>{1001});
  CHECK(cluster.starting()[0].began <= 20s + poll + pull + tick);
}

TEST_CASE("when nodes die while the cluster starts, the living end with one lineage") {
  Random random(2);
  for (int run = 0; run < 300 / fewer; ++run) {
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
    CHECK(cluster.origins().size() == 1);
    CHECK(cluster.origins().count(0) == 0);
  }
}

TEST_CASE("resumed nodes keep their lineage, and new ones among them take it") {
  Random random(3);
  for (int run = 0; run < 200 / fewer; ++run) {
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
    CHECK(cluster.origins() == std::set<std::uint64_t>{77});
  }
}

TEST_CASE("one node that says the name is taken turns no node away before the wait is over") {
  std::vector<StartingNode> nodes(4);
  nodes[0].lie = Lie::refuses_name;
  nodes[2].arrives = nodes[3].arrives = 1500ms;  // longer than the patience with a refusal
  StartingCluster cluster(nodes, 1);
  cluster.run(12s);
  for (std::size_t i = 1; i < 4; ++i) CHECK(cluster.starting()[i].failure == "");
  CHECK(cluster.origins() == std::set<std::uint64_t>{1001});
}

TEST_CASE("a node whose name most others refuse ends and says why") {
  std::vector<StartingNode> nodes(6);
  for (std::size_t i = 0; i < 3; ++i) nodes[i].lie = Lie::refuses_name;
  nodes[5].arrives = never;
  StartingCluster cluster(nodes, 1);
  cluster.run(900ms);
  CHECK(cluster.starting()[3].failure == "");
  cluster.run(2s);
  CHECK(cluster.starting()[3].failure == "node 'w3' was refused: the name is taken");
}

TEST_CASE("with fewer nodes than gossip.min_nodes a node does not begin, and says who is missing") {
  std::vector<StartingNode> nodes(3);
  nodes[1].arrives = nodes[2].arrives = never;
  GossipOptions options = without_comparison();
  options.min_nodes = 2;
  StartingCluster cluster(nodes, 1, options);
  cluster.run(11s);
  CHECK(cluster.starting()[0].failure.ends_with(
      "(gossip.start_wait_ms) no other node runs, and "
      "gossip.min_nodes requires 2; no answer from 'w1', 'w2'"));
}

TEST_CASE("with some of the nodes that gossip.min_nodes requires, the failure counts them") {
  std::vector<StartingNode> nodes(3);
  nodes[1].arrives = 500ms;  // or it gives up first
  nodes[2].arrives = never;
  GossipOptions options = without_comparison();
  options.min_nodes = 3;
  StartingCluster cluster(nodes, 1, options);
  cluster.run(11s);
  CHECK(
      cluster.starting()[0].failure.ends_with("(gossip.start_wait_ms) only 2 nodes run, this one "
                                              "included, and gossip.min_nodes requires 3; "
                                              "no answer from 'w2'"));
}

TEST_CASE("a node that is alone says so at its start") {
  std::vector<StartingNode> nodes(3);
  nodes[1].arrives = nodes[2].arrives = never;
  StartingCluster cluster(nodes, 1);
  cluster.run(11s);
  CHECK(cluster.starting()[0].ready);
  CHECK(std::ranges::count(cluster.lines(), "waiting for 'w1', 'w2'") == 4);
  CHECK(cluster.lines().back().starts_with("started alone, without 'w1', 'w2', after 10"));
}

TEST_CASE("with clip and refuse a joiner leaves weights alone that are far from most others'") {
  for (const auto policy : {DistancePolicy::warn, DistancePolicy::clip, DistancePolicy::refuse}) {
    for (const std::size_t honest : {2, 3, 7}) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(honest);
      std::vector<StartingNode> nodes(honest + 1);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i].lie = Lie::trains;
        nodes[i].lineage = 77;
        nodes[i].resumed_clock = 500;
        nodes[i].weights = 1 + 0.1 * static_cast<double>(i);
      }
      nodes[0].resumed_clock = 900;  // the liar is the one that is ahead
      nodes[0].weights = 100;
      nodes.push_back({.arrives = 2s});
      GossipOptions options;
      options.pulls.firewall.distance = policy;
      StartingCluster cluster(nodes, 1, options);
      cluster.run(7s);
      const StartingNode& joiner = cluster.starting().back();
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
        nodes[i].lie = Lie::trains;
        nodes[i].lineage = i == 0 ? 78 : 77;  // the first one lies
        nodes[i].resumed_clock = i == 0 ? 1e6 : 500;
        nodes[i].weights = i == 0 ? 100 : 1;
      }
      nodes.push_back({.arrives = 2s});
      StartingCluster cluster(nodes, seed);
      cluster.run(7s);
      const StartingNode& joiner = cluster.starting().back();
      REQUIRE(joiner.ready);
      CHECK(joiner.began_with < 2);
      CHECK(joiner.began_at_clock < 1000);
    }
  }
}

}  // namespace
}  // namespace dpwa::world::testing
