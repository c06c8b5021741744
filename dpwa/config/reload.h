#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa {

// What a running node does with a cluster file that has changed (SIGHUP). It takes over the other
// nodes, the waits and chances of pulls, the log, and the keys and certificates; everything else is
// what the run was begun with, and stays so until a restart.
struct ReloadPlan {
  struct Change {
    std::string key;     // as in the file, e.g. gossip.timeout_ms, nodes[w2].port
    std::string before;  // empty: was not there
    std::string after;   // empty: is no more
  };
  Config config;                  // of the running node from now on; its list of nodes is unchanged
  std::vector<Change> applied;    // what differs and is taken over, in the order of the file
  std::vector<Change> kept;       // what differs and needs a restart
  std::vector<NodeEntry> joined;  // other nodes that are new
  std::vector<NodeEntry> moved;   // that are to be dialled elsewhere
  std::vector<std::string> gone;  // that are no longer listed
};

// Pure. `fresh` has been loaded and validated for the same node.
ReloadPlan plan_reload(const Config& running, const Config& fresh);

// Runs `reload` of a node that goes on whatever becomes of it: what it throws (a file that is
// wrong, memory that is refused) ends as one line of the log. `reload` changes nothing before it
// throws.
void reload_or_keep(const std::function<void()>& reload) noexcept;

// One line a change, for the log: "gossip.timeout_ms: 500ms -> 2s".
std::string to_text(const ReloadPlan::Change& change);

}  // namespace dpwa
