#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/engine/trainer_state.h"
#include "dpwa/rules/firewall.h"
#include "dpwa/rules/peer_table.h"
#include "dpwa/rules/progress.h"

namespace dpwa::testing {

// Honest nodes that descend towards an optimum with noise and average in rounds, and a last one
// that answers with lies: the very objects that a real node decides with, on a virtual clock.
class ByzantineCluster {
 public:
  ByzantineCluster(std::size_t honest, DistancePolicy policy);

  // Every coordinate of all models; 0 at first.
  void begin_at(double value);
  // Every coordinate of what the nodes train for; 1 at first.
  void set_optimum(double value) { optimum_ = value; }
  double optimum() const { return optimum_; }
  // These honest nodes stand still and reach nobody, nor does anybody reach them.
  void set_frozen(std::set<std::size_t> nodes) { frozen_ = std::move(nodes); }

  // `lie`: the liar's answer is so many times what the first node has; 1 is an honest answer.
  void run(int rounds, double lie);

  double error() const;  // root mean square over the nodes of the distance to what they train for
  double consensus_distance() const;
  std::size_t quarantining_the_liar() const;
  // Distances that were worth a line in an honest node's log.
  std::uint64_t reports() const { return reports_; }
  std::uint64_t quarantines_of_honest_nodes() const;

 private:
  using Vector = std::vector<double>;
  struct Node {
    Vector values;
    TrainerState state;
    PeerTable table;
    Firewall firewall;
  };

  PeerId liar() const { return static_cast<PeerId>(honest_ - 1); }  // as every honest node counts
  struct Snapshot {
    Vector values;
    Progress progress;
  };
  void blend(Node& node, const Snapshot& peer, double squared_distance, double scale);
  void pull(std::size_t index, const std::vector<Snapshot>& snapshots);

  const std::size_t honest_;
  double optimum_ = 1;
  std::set<std::size_t> frozen_;
  std::uint64_t reports_ = 0;
  std::vector<Node> nodes_;
  Random random_{7};
  TimePoint now_;
};

}  // namespace dpwa::testing
