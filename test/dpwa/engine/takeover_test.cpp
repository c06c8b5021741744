#include <doctest/doctest.h>

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
#include "dpwa/engine/trainer_state.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/pull_round.h"
#include "interpolation/registry.h"

using namespace std::chrono_literals;
using namespace dpwa;

namespace {

// Nodes of one cluster file that train in lockstep, each with a TrainerState and a model of one
// parameter, on a virtual clock. A snapshot may be replaced by a lie.
class LineageCluster {
 public:
  explicit LineageCluster(std::size_t count) {
    others_.members.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      others_.members[i].seed = true;
      others_.members[i].claim.name = name_of(i);
      TrainerOptions options;
      options.start_wait = 10s;
      TrainerState state(options,
                         GuardedInterpolation(interpolation_registry().make("constant", {}), 0.5),
                         random_);
      state.replace(0, 7);
      nodes_.push_back({std::move(state),
                        PeerTable(std::vector<std::string>(count - 1, "peer"), {}, {}),
                        std::vector<std::uint64_t>(count),
                        {},
                        {},
                        0});
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
    Arrival arrival = round(index, node.state.plan_pull(random_).adopt_from);
    Surroundings others;
    if (node.state.needs_surroundings(arrival)) {
      others = others_;
      others.members.erase(others.members.begin() + static_cast<std::ptrdiff_t>(index));
      others.given = node.given;
    }
    const Absorbed what = node.state.absorb(arrival, others, now_);
    if (what == Absorbed::blend) {
      const double factor = node.state.blend(arrival, 1);
      node.weights += factor * (source_->weights - node.weights);
    } else if (what == Absorbed::adopt) {
      node.weights = source_->weights;
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

  TrainerState& state(std::size_t index) { return nodes_[index].state; }
  double& weights(std::size_t index) { return nodes_[index].weights; }
  int takeovers() const { return takeovers_; }

 private:
  struct Node {
    TrainerState state;
    PeerTable table;
    std::vector<std::uint64_t> seen;  // versions, by node
    std::map<std::string, GivenWeights, std::less<>> given;
    Progress snapshot;
    double weights;
  };

  static std::string name_of(std::size_t index) { return "w" + std::to_string(index + 1); }

  Arrival round(std::size_t index, std::optional<PeerId> adopt_from) {
    Node& node = nodes_[index];
    Arrival arrival;
    arrival.full = adopt_from.has_value();
    arrival.own = node.state.progress();
    PullRound round;
    round.begin(now_, 1s, adopt_from);
    while (const auto peer = round.next_peer(node.table, now_, random_)) {
      const std::size_t owner = *peer < index ? *peer : *peer + 1;
      Node& other = nodes_[owner];
      arrival.peer = *peer;
      arrival.peer_name = name_of(owner);
      arrival.progress = other.snapshot;
      if (!adopt_from && node.seen[owner] == other.snapshot.version) {
        round.failed(node.table, PeerFailure::unchanged, now_, random_);
      } else if (!adopt_from && other.snapshot.lineage != node.state.lineage()) {
        arrival.other_lineages.push_back({*peer, arrival.peer_name, other.snapshot});
        round.failed(node.table, PeerFailure::other_lineage, now_, random_);
      } else {
        node.seen[owner] = other.snapshot.version;
        source_ = &other;
        if (adopt_from)
          other.given.insert_or_assign(name_of(index), GivenWeights{now_, other.snapshot.lineage});
        if (!adopt_from) node.table.shares_lineage(*peer);
        round.succeeded(node.table, other.snapshot, now_);
      }
    }
    arrival.outcome = round.outcome();
    return arrival;
  }

  std::vector<Node> nodes_;
  Surroundings others_;
  Random random_{5};
  TimePoint now_{1h};
  const Node* source_ = nullptr;  // of what was pulled last
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

TEST_CASE("of two nodes the one with the lower clock follows the other once, and not for ever") {
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
