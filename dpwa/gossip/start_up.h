#pragma once

#include <string>
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
  std::vector<StartView> look_around();
  bool pull_from(std::size_t file_index);
  void announce_waiting(const std::vector<StartView>& views);

  Gossip& gossip_;
  std::vector<unsigned> failed_pulls_;  // by place in the file
  std::string refusal_;                 // the last reason that a peer gave for refusing this node
  TimePoint announced_{};
};

}  // namespace dpwa
