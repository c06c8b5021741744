#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

  using Vector = std::vector<double>;
  struct Snapshot {
    Vector values;
    Progress progress;
    bool finite = true;
  };
  // Makes a lie, for the node `victim`, out of a snapshot of the first node. `nth`: of the lies for
  // this victim.
  using Lie = std::function<void(Snapshot& snapshot, const Vector& victim, std::uint64_t nth)>;

  // `lie`: the liar sends the values of the first node times this; 1 is an honest answer; at 0 it
  // cannot be reached.
  void run(int rounds, double lie);
  void run(int rounds, const Lie& lie);
  // The liar calls all others in each round, as a new process.
  void set_restarting(bool restarts) { restarts_ = restarts; }

  // Of the distances between the nodes and the optimum: the root mean square.
  double error() const;
  double consensus_distance() const;
  double outlier_distance() const;  // of the last honest node to the mean of the others
  // Warnings about distances in the logs of the honest nodes.
  std::uint64_t reports() const { return reports_; }
  // Of the honest nodes, for each step of one: blends; pulls of the liar; and steps in which an
  // honest node takes another for an offender.
  double blends() const { return share(blends_); }
  double pulls_of_liar() const { return share(pulls_of_liar_); }
  double accusations() const { return share(accusations_); }
  void count_anew() { steps_ = blends_ = pulls_of_liar_ = accusations_ = 0; }

 private:
  struct Node {
    Vector values;
    TrainerState state;
    PullEngine engine;
  };

  double share(std::uint64_t count) const {
    return static_cast<double>(count) / static_cast<double>(steps_);
  }
  PeerId liar() const { return static_cast<PeerId>(honest_ - 1); }  // for every honest node
  void round(const Lie& lie);
  void pull(std::size_t index, const std::vector<Snapshot>& snapshots, const Lie& lie);
  void blend(Node& node, const Snapshot& peer, const Arrival& arrival);

  const std::size_t honest_;
  const bool ledger_;
  double optimum_ = 1;
  double outlier_ = 0;
  std::set<std::size_t> frozen_;
  bool restarts_ = false;
  std::uint64_t reports_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t blends_ = 0;
  std::uint64_t pulls_of_liar_ = 0;
  std::uint64_t accusations_ = 0;
  std::uint64_t round_ = 0;
  std::vector<std::uint64_t> lies_;  // to each honest node
  std::vector<Node> nodes_;
  Random random_{7};
  TimePoint now_;
};

}  // namespace dpwa::test
