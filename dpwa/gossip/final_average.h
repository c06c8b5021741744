#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/snapshot/snapshot_store.h"

namespace dpwa {

// The end of a node: publishes its final parameters, waits for the others to finish, and replaces
// its own by the mean over all that did, itself included. Every node folds the same snapshots in
// the same order, so nodes with the same participants end bit-identical: that of the cluster file,
// or of their names once a node that is not in the file takes part. Nodes that are gone, or not
// finished within gossip.finish_wait, are left out. The whole takes three times that at most: one
// to wait for the others, one to average, one to serve those that still want the snapshot. Runs on
// the trainer thread.
class FinalAverage {
 public:
  explicit FinalAverage(Gossip& gossip);
  FinishReport run();

 private:
  struct Other {
    PeerId peer = 0;
    std::string name;
    bool of_file = true;
    bool final = false;     // has finished, can be pulled from
    bool answered = false;  // as a node, ever
    TimePoint seen{};       // when it answered last
  };
  std::vector<Other> wait_for_finals();
  // Takes up what the greetings say; whether one is still to be waited for.
  bool update(std::vector<Other>& others, const std::vector<Greeted>& greeted, TimePoint now);
  FinishReport average(const std::vector<Other>& others);
  // Of `other`, within what is left until `until`. Whether it landed and may be folded in.
  bool pull(const Other& other, TimePoint until);
  std::optional<SnapshotStore::Writer> free_buffer(TimePoint until);
  FinishReport report_on(FinishReport report, std::size_t known, const std::string& why) const;
  std::vector<const Other*> in_order(const std::vector<Other>& others, std::size_t& self) const;
  // Until those that may want our snapshot have it, or are gone.
  void linger(std::vector<Other>& others);

  Gossip& gossip_;
  const TimePoint begun_;
  const std::size_t file_peers_;  // peers that the cluster file names
};

}  // namespace dpwa
