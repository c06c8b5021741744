#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dpwa/core/start_rule.h"
#include "dpwa/gossip/gossip.h"

namespace dpwa {

// The start of a node: greets every peer until start_rule.h decides, pulls the common weights in
// full or becomes their source, then declares the node ready. Runs on the trainer thread.
class StartUp {
 public:
  explicit StartUp(Gossip& gossip) : gossip_(gossip) {}
  void run();

 private:
  // Nodes in the order in which the first of them that runs brings the weights: those of the file,
  // this one among them, then those that joined. One that joins itself comes last.
  struct Seen {
    StartView view;
    std::optional<PeerId> peer;  // none: this node
    std::string name{};
  };
  void join();  // by the nodes that it was told to
  std::vector<Seen> look_around();
  void look_for_namesake(const std::vector<Greeted>& greeted);
  bool pull_from(PeerId best, const std::vector<Seen>& seen, std::optional<double> resumed_clock);
  bool take_over(PeerId peer);  // its weights
  // With `clip` and `refuse`: `best` and others to compare its weights with, none of them behind
  // what this node has; empty: too few.
  std::vector<PeerId> witnesses_for(PeerId best, const std::vector<Seen>& seen,
                                    std::optional<double> resumed_clock);
  void announce_waiting(const std::vector<Seen>& seen);

  Gossip& gossip_;
  std::unordered_map<PeerId, unsigned> failed_pulls_;
  std::string refusal_;  // the last reason that a peer gave for refusing this node
  TimePoint announced_{};
  std::optional<TimePoint> name_refused_;  // since when our name is said to be another's
};

}  // namespace dpwa
