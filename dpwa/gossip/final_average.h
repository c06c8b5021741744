#pragma once

#include <vector>

#include "dpwa/core/time.h"
#include "dpwa/gossip/gossip.h"

namespace dpwa {

// The end of a node: publishes its final parameters, waits for the others to finish, and replaces
// its own by the mean over all that did, itself included. Every node folds the same snapshots in
// the order of the cluster file, so nodes with the same participants end bit-identical. Nodes that
// are gone, or not finished within gossip.finish_wait, are left out. Runs on the trainer thread.
class FinalAverage {
 public:
  explicit FinalAverage(Gossip& gossip);
  FinishReport run();

 private:
  std::vector<bool> wait_for_finals();  // by file index: has finished, can be pulled from
  FinishReport average(std::vector<bool> finals);
  void linger(
      const std::vector<bool>& finals);  // until those that may want it have our final snapshot

  Gossip& gossip_;
  const std::vector<std::size_t> indices_;  // PeerId -> file index
};

}  // namespace dpwa
