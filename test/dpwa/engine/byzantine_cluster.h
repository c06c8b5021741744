#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/engine/trainer_state.h"

namespace dpwa::test {

// Honest nodes that descend towards an optimum with noise and average in rounds, and a last node
// that answers with lies. Each honest node drives the TrainerState and the PullEngine of the real
// node, on a virtual clock.
class ByzantineCluster {
 public:
  // `ledger`: the honest nodes keep the pair ledger. The liar keeps none.
  ByzantineCluster(std::size_t honest, DistancePolicy policy, bool ledger = false);

  // Every coordinate of all models; 0 at first.
  void begin_at(double value);
  // Every coordinate of what the nodes train for; 1 at first.
  void set_optimum(double value) { optimum_ = value; }
  double optimum() const { return optimum_; }
  // The last honest node trains for something that is so far from that, in every coordinate.
  void set_outlier(double offset) { outlier_ = offset; }
  // These honest nodes do not train, reach no other node, and no other node reaches them.
  void set_frozen(std::set<std::size_t> nodes) { frozen_ = std::move(nodes); }

  // `lie`: the liar sends the values of the first node times this; 1 is an honest answer; at 0 it
  // cannot be reached.
  void run(int rounds, double lie);

  // Of the distances between the nodes and the optimum: the root mean square.
  double error() const;
  double consensus_distance() const;
  double outlier_distance() const;  // of the last honest node to the mean of the others
  std::size_t quarantining_the_liar() const;
  // Warnings about distances in the logs of the honest nodes.
  std::uint64_t reports() const { return reports_; }
  std::uint64_t quarantines_of_honest_nodes() const;

 private:
  using Vector = std::vector<double>;
  struct Node {
    Vector values;
    TrainerState state;
    PullEngine engine;
  };

  struct Snapshot {
    Vector values;
    Progress progress;
  };
  PeerId liar() const { return static_cast<PeerId>(honest_ - 1); }  // for every honest node
  void pull(std::size_t index, const std::vector<Snapshot>& snapshots, bool liar_answers);
  void blend(Node& node, const Snapshot& peer, const Arrival& arrival);

  const std::size_t honest_;
  const bool ledger_;
  double optimum_ = 1;
  double outlier_ = 0;
  std::set<std::size_t> frozen_;
  std::uint64_t reports_ = 0;
  std::uint64_t round_ = 0;
  std::vector<Node> nodes_;
  Random random_{7};
  TimePoint now_;
};

}  // namespace dpwa::test
