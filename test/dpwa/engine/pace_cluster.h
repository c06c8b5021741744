#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/engine/trainer_state.h"
#include "test/dpwa/engine/pull_driver.h"

namespace dpwa::test {

struct PaceOptions {
  std::size_t nodes = 4;
  std::uint64_t seed = 1;
  double slowdown = 1;  // of node 0: its steps take so many times as long as the others'
  double factor = 0.5;
  bool ledger = true;
  bool fresh_only = true;   // peers decline pulls while their snapshot is older than a usual step
  double pause_chance = 0;  // of each step of any node: it takes `pause` usual steps more
  double pause = 0;
  unsigned blocks = 1;
  StalenessOptions staleness;
  // A few numbers lie further apart than a model, so the firewall acts only where a test says so.
  DistancePolicy distance = DistancePolicy::warn;
  std::size_t random_walks = 4;  // the more, the more of a distance is noise, as of a model
};

// Nodes of different paces that train: each drives the pull engine and the trainer state of the
// real node on a virtual clock, with the delta blend and pulls that overlap training. A network
// without delay. The parameters are numbers by which the averaging can be judged:
//   a unit that one node adds, a constant gradient of 1 a step, initial values, and random steps.
class PaceCluster {
 public:
  explicit PaceCluster(PaceOptions options);

  // Until a node of the usual pace has made so many steps more.
  void run(double steps);
  // Until node 0 has made so many steps in all; then it adds the unit.
  void add_unit_at(std::uint64_t step);

  void cut_off(std::size_t node, bool callable, bool calls);
  void freeze(std::size_t node, bool frozen);  // answers, and its trainer stands still
  void spoil(std::size_t node, bool spoilt);   // what it sends is not finite
  void restart(std::size_t node);              // a new process, with the weights of node 1
  // The last `count` nodes can call all others and be called only by one another.
  void hide_last(std::size_t count) { hidden_ = count; }
  // Nodes of different groups do not reach each other.
  void split(std::vector<int> groups) { groups_ = std::move(groups); }

  double kept() const;    // the sum of the added unit over all nodes
  double clocks() const;  // sums over all nodes
  double steps() const;
  double rate() const { return clocks() / steps(); }
  double moved_rate() const;  // the same by the constant gradient
  double blends() const;      // a step, mean over all nodes
  double blends(std::size_t node) const;
  double clipped() const;  // of the blends of all nodes
  void count_blends_anew();
  std::uint64_t steps_of(std::size_t node) const { return nodes_[node]->steps; }
  void restore_initial_values();
  double initial_variance() const;  // of what the initial values have become
  double disagreement() const;      // variance of the random steps' sum
  std::size_t size() const { return nodes_.size(); }

 private:
  using Values = std::vector<double>;
  struct Node {
    Node(const PaceOptions& options, std::size_t rank, std::uint64_t incarnation);
    std::uint64_t incarnation;
    std::uint64_t life = 0;
    Random random;
    PullEngine engine;
    TrainerState trainer;
    Values values;
    Values snapshot;
    Progress published;
    TimePoint fresh_until = TimePoint::max();
    bool pulling = false;
    std::optional<Arrival> arrival;
    Values difference;  // that came with it
    bool callable = true, calls = true, frozen = false, spoilt = false;
    std::uint64_t steps = 0, blends = 0, clipped = 0, counted_from = 0;
  };
  struct Event {
    TimePoint at;
    std::uint64_t order = 0;
    std::size_t node = 0;
    std::uint64_t life = 0;
    bool step = false;  // else the pull of the node goes on
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void schedule(std::size_t node, Duration after, bool step);
  void step(std::size_t node);
  void absorb(Node& node);
  void pull(std::size_t node);
  Offer ask(std::size_t node, const PullEngine::Ask& ask);
  bool reaches(std::size_t from, std::size_t to) const;
  void take_next_event();
  std::size_t dimensions() const;
  double variance(std::size_t first, std::size_t last) const;

  PaceOptions options_;
  TimePoint now_{};
  std::uint64_t order_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<int> groups_;
  std::size_t hidden_ = 0;
  std::priority_queue<Event> events_;
};

}  // namespace dpwa::test
