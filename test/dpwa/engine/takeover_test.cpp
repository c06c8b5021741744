#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/engine/trainer_state.h"
#include "interpolation/registry.h"
#include "test/dpwa/engine/pull_driver.h"

using namespace std::chrono_literals;
using namespace dpwa;

namespace {

// Nodes of one cluster file that train in lockstep on a virtual clock. Each node has a
// TrainerState, a PullEngine and a model of one parameter. A snapshot may be replaced by a lie.
class LineageCluster {
 public:
  explicit LineageCluster(std::size_t count, std::uint64_t seed = 5) : random_(seed) {
    others_.members.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      others_.members[i].listed = true;
      others_.members[i].claim.name = name_of(i);
      TrainerOptions options;
      options.start_wait = 10s;
      TrainerState state(options,
                         GuardedInterpolation(interpolation_registry().make("constant", {}), 0.5),
                         random_);
      state.replace(0, 7);
      std::vector<std::string> peers;
      for (std::size_t other = 0; other < count; ++other)
        if (other != i) peers.push_back(name_of(other));
      PullEngineOptions pulls = dpwa::test::measuring(DistancePolicy::off);
      pulls.seed = derive_seed(seed, {i});
      nodes_.push_back({std::move(state), PullEngine(pulls, peers), {}, {}, 0});
    }
  }

  void publish(std::size_t index) {
    Node& node = nodes_[index];
    const std::uint64_t version = node.snapshot.version + 1;
    node.snapshot = node.state.publish();
    node.snapshot.version = version;
  }
  void publish_as(std::size_t index, std::uint64_t lineage, double clock) {
    Progress& snapshot = nodes_[index].snapshot;
    ++snapshot.version;
    snapshot.lineage = lineage;
    snapshot.clock = clock;
  }
  StepReport pull(std::size_t index) {
    Node& node = nodes_[index];
    now_ += 10ms;
    Arrival arrival = perform(index, node.state.plan_pull(random_));
    Surroundings others;
    if (node.state.needs_surroundings(arrival)) {
      others = others_;
      others.members.erase(others.members.begin() + static_cast<std::ptrdiff_t>(index));
      others.given = node.given;
    }
    const Absorbed what = node.state.absorb(arrival, others, now_);
    if (what == Absorbed::blend) {
      const double factor = node.state.blend(arrival, 1);
      node.weights += factor * (source(index, arrival).weights - node.weights);
    } else if (what == Absorbed::adopt) {
      node.weights = source(index, arrival).weights;
      node.state.take_over(arrival, now_);
    }
    for (const TrainerLine& line : node.state.take_lines())
      takeovers_ += line.text.starts_with("took over") ? 1 : 0;
    return node.state.end_step(false, {});
  }
  StepReport step(std::size_t index) {
    publish(index);
    return pull(index);
  }

  void step_of_any() { step(random_.below(nodes_.size())); }

  // One that published these weights before.
  void resume(std::size_t index, double clock, std::uint64_t lineage) {
    nodes_[index].state.restore(clock, lineage);
    publish(index);
  }
  bool agree(std::size_t first) const {
    return std::all_of(
        nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(first),
        [&](const Node& node) { return node.state.lineage() == nodes_[0].state.lineage(); });
  }
  TrainerState& state(std::size_t index) { return nodes_[index].state; }
  double& weights(std::size_t index) { return nodes_[index].weights; }
  int takeovers() const { return takeovers_; }

 private:
  struct Node {
    TrainerState state;
    PullEngine engine;
    std::map<std::string, GivenWeights, std::less<>> given;
    Progress snapshot;
    double weights;
  };

  static std::string name_of(std::size_t index) { return "w" + std::to_string(index + 1); }

  const Node& source(std::size_t index, const Arrival& arrival) const {
    return nodes_[dpwa::test::node_of(index, *arrival.peer)];
  }

  Arrival perform(std::size_t index, const RoundSpec& round) {
    Node& node = nodes_[index];
    return dpwa::test::run_round(
        node.engine, round, node.state.progress(), now_, [&](const PullEngine::Ask& ask) {
          Node& other = nodes_[dpwa::test::node_of(index, ask.peer)];
          if (round.exchange.replaces())
            other.given.insert_or_assign(name_of(index),
                                         GivenWeights{now_, other.snapshot.lineage});
          return other.snapshot;
        });
  }

  std::vector<Node> nodes_;
  Surroundings others_;
  Random random_;
  TimePoint now_{1h};
  int takeovers_ = 0;
};

}  // namespace

TEST_CASE("a peer with a new lineage and a higher clock at every pull moves no honest node") {
  LineageCluster cluster(4);
  for (std::uint64_t step = 1; step <= 60; ++step) {
    cluster.publish_as(3, 1000 + step, 1e3 * static_cast<double>(step));
    for (std::size_t i = 0; i < 3; ++i) cluster.step(i);
  }
  CHECK(cluster.takeovers() == 0);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(cluster.state(i).lineage() == 7);
    CHECK(cluster.state(i).clock() < 100);
  }
}

TEST_CASE("a peer of another lineage for ever costs the others none of their blends") {
  for (const bool new_each_time : {true, false}) {
    CAPTURE(new_each_time);
    LineageCluster cluster(4);
    for (std::size_t i = 0; i < 4; ++i) cluster.publish(i);
    int blends = 0;
    for (std::uint64_t step = 1; step <= 40; ++step) {
      cluster.publish_as(3, new_each_time ? 1000 + step : 1000, static_cast<double>(step));
      for (std::size_t i = 0; i < 3; ++i) cluster.publish(i);
      for (std::size_t i = 0; i < 3; ++i)
        blends += cluster.pull(i).outcome == Outcome::mixed ? 1 : 0;
    }
    CHECK(blends == 3 * 40);
  }
}

TEST_CASE("the node with the lower clock follows the other once, not for ever") {
  LineageCluster cluster(2);
  for (std::uint64_t step = 1; step <= 60; ++step) {
    cluster.publish_as(1, 1000 + step / 10, 1e3 * static_cast<double>(step));
    cluster.step(0);
  }
  CHECK(cluster.takeovers() == 1);
}

TEST_CASE("after a split has healed all nodes come to one lineage, that of more of them") {
  struct Split {
    std::vector<double> clocks;  // of each node; the sign tells the side
    double winner;               // its sign
  };
  for (const Split& split :
       {Split{{90, 80, -7, -6}, 1}, Split{{5, 4, -60, -70}, -1}, Split{{5, 6, 7, -1000}, 1}}) {
    LineageCluster cluster(4);
    for (std::size_t i = 0; i < 4; ++i) {
      const double clock = split.clocks[i];
      cluster.state(i).restore(std::abs(clock), clock > 0 ? 50 : 70);
      cluster.weights(i) = clock > 0 ? 1 : -1;
      cluster.publish(i);
    }
    const auto agreed = [&] {
      for (std::size_t i = 1; i < 4; ++i)
        if (cluster.state(i).lineage() != cluster.state(0).lineage()) return false;
      return true;
    };
    for (int round = 0; round < 300 && !agreed(); ++round)
      for (std::size_t i = 0; i < 4; ++i) cluster.step(i);
    CHECK(agreed());
    CHECK(cluster.state(0).lineage() == (split.winner > 0 ? 50U : 70U));
    for (std::size_t i = 0; i < 4; ++i) CHECK(cluster.weights(i) == split.winner);
    CHECK(cluster.takeovers() <= 2);
  }
}

TEST_CASE("a healed split ends with one lineage, and no node moves more often than it must") {
  const std::vector<std::vector<std::uint64_t>> splits{
      {1, 2},       {1, 1, 2, 2},       {1, 1, 1, 2},
      {1, 2, 3, 4}, {1, 1, 2, 2, 3, 3}, {1, 1, 1, 1, 2, 2, 2, 2}};
  for (const auto& split : splits) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      CAPTURE(split.size());
      CAPTURE(seed);
      LineageCluster cluster(split.size(), seed);
      Random clocks(seed);
      for (std::size_t i = 0; i < split.size(); ++i)
        cluster.resume(i, clocks.uniform(0, 9), split[i]);
      int steps = 0;
      while (!cluster.agree(split.size()) && ++steps < 20000) cluster.step_of_any();
      CHECK(cluster.agree(split.size()));
      CHECK(cluster.takeovers() <= 2 * static_cast<int>(split.size()));
    }
  }
  LineageCluster three_to_one(4, 1);
  for (std::size_t i = 0; i < 4; ++i) three_to_one.resume(i, i < 3 ? 5 : 1e6, i < 3 ? 1 : 2);
  for (int i = 0; i < 2000; ++i) three_to_one.step_of_any();
  CHECK(three_to_one.agree(4));
  CHECK(three_to_one.state(0).lineage() == 1);
  CHECK(three_to_one.takeovers() == 1);
}

TEST_CASE("a liar with a new lineage and a higher clock at every pull moves no majority") {
  LineageCluster cluster(4, 2);
  for (std::size_t i = 0; i < 3; ++i) cluster.resume(i, 5, 1);
  Random random(2);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    cluster.publish_as(3, 100 + i, 1e6 + 1e3 * static_cast<double>(i));
    cluster.step(random.below(3));
  }
  CHECK(cluster.agree(3));
  CHECK(cluster.state(0).lineage() == 1);
}
