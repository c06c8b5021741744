#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_handler.h"
#include "dpwa/group/shared_entries.h"
#include "dpwa/members/group_engine.h"

namespace dpwa {
class Security;
struct LocalProcess;
}  // namespace dpwa

namespace dpwa::group {

// A process of the cluster file in the group of those that step together: drives GroupEngine over a
// connection to each of the others, on a thread of its own. What the others send comes in over the
// server of this process (GroupHandler). The views that it tells are on the disk. Any thread.
class GroupNode {
 public:
  // `local`: the process as its Endpoint has it; `inbox`: that of a handler of the Endpoint's
  // server. Both outlive it. `terms`, `first_terms`: as of GroupEngine.
  GroupNode(const Config& config, LocalProcess& local, std::shared_ptr<Inbox> inbox, Settings terms,
            std::size_t first_terms = 1);
  ~GroupNode();  // in well under a second
  GroupNode(const GroupNode&) = delete;
  GroupNode& operator=(const GroupNode&) = delete;

  // What is known at one moment.
  struct State {
    members::View view;
    members::ProcessId self;
    members::ViewEngine::Standing standing = members::ViewEngine::Standing::applies;
    bool frozen = false;  // a next view is being decided: no operation completes
    std::map<std::string, members::Peer> peers;
    std::vector<std::pair<std::string, std::string>> lacking;  // as of GroupEngine
    Duration lost_after{};                                     // as of FailureDetector
    Duration late_after{};
    TimePoint at{};

    bool in_view() const { return view.member(self) != nullptr; }
    // Heard of so lately that it lives.
    bool answers(const members::Peer& peer) const {
      return peer.id && !peer.refuses() && at - peer.heard < late_after;
    }
  };
  State state() const;
  // Waits until something has changed beyond what was `seen`, which the last call returned; at
  // first 0. No longer than until this time.
  std::uint64_t wait_for_change(std::uint64_t seen, TimePoint until);
  void wake();  // ends the waits of all

  // As of ViewEngine, and of GroupEngine.
  bool complete(std::uint64_t view, std::uint64_t operation);
  bool begin_at(std::uint64_t view, std::uint64_t through);
  void note_state(std::uint64_t through, std::uint64_t digest);
  void renew();
  void leave();
  void give_up(const std::string& name);
  void set_waiting(bool waits);
  void set_seeking(bool seeks);

  // What the members of a group tell one another to connect. Usable beyond the life of this node.
  std::shared_ptr<SharedEntries> entries() const;

  // The run is over for this process: a later one of its name has nothing to answer for.
  void forget();

 private:
  class Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace dpwa::group
