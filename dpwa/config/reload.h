#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/config/config.h"

namespace dpwa {

// The response of a running node to a changed cluster file (SIGHUP). It takes over the other
// nodes, the waits and probabilities of pulls, the log, and the keys and certificates. Everything
// else stays as it was at the start of the run, until a restart.
struct ReloadPlan {
  struct Change {
    std::string key;     // as in the file, e.g. gossip.timeout_ms, nodes[w2].port
    std::string before;  // empty: it was not given
    std::string after;   // empty: it is no longer given
  };
  Config config;                  // of the running node from now on; its list of nodes is unchanged
  std::vector<Change> applied;    // changes that are taken over, in the order of the file
  std::vector<Change> kept;       // changes that need a restart
  std::vector<NodeEntry> joined;  // other nodes that are new
  std::vector<NodeEntry> moved;   // other nodes with a new endpoint
  std::vector<std::string> gone;  // nodes that are no longer listed
};

// Pure. `fresh` has been loaded and validated for the same node.
ReloadPlan plan_reload(const Config& running, const Config& fresh);

// Runs `reload` for a node that continues even when that fails. An exception (a wrong file,
// refused memory) becomes one line of the log. `reload` must change nothing before it throws.
void reload_or_keep(const std::function<void()>& reload) noexcept;

// Loads the cluster file again on a thread of its own: a name server that does not answer holds up
// the resolution of host names for ten seconds and more, and a training step must not wait for it.
// Used by one thread, which polls between two steps.
class BackgroundReload {
 public:
  // `load` runs on the other thread, and throws ConfigError.
  explicit BackgroundReload(std::function<Config()> load) : load_(std::move(load)) {}
  ~BackgroundReload();  // ends a load under way, without waiting for a name server
  BackgroundReload(const BackgroundReload&) = delete;
  BackgroundReload& operator=(const BackgroundReload&) = delete;

  // A load that is under way may have read the file already, so that another one follows it.
  void begin() noexcept;
  // Once for each load that is over: `apply` takes over the result. Exceptions of either are
  // for reload_or_keep().
  void poll(const std::function<void(Config fresh)>& apply) noexcept;

 private:
  const std::function<Config()> load_;
  std::stop_source stop_;
  std::thread thread_;
  std::atomic<bool> over_{false};  // that thread is at its end: the members below may be read
  Config fresh_;
  std::exception_ptr failure_;
  bool again_ = false;
};

// One line for each change, for the log: "gossip.timeout_ms: 500ms -> 2s".
std::string to_text(const ReloadPlan::Change& change);

}  // namespace dpwa
