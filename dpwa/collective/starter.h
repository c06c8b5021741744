#pragma once

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>

#include "dpwa/base/settings.h"
#include "dpwa/base/wait_lines.h"
#include "dpwa/collective/group_session.h"
#include "dpwa/collective/replica.h"
#include "dpwa/collective/signature.h"
#include "dpwa/collective/state_transfer.h"
#include "dpwa/collective/step_record.h"
#include "dpwa/config/config.h"
#include "dpwa/config/place.h"
#include "dpwa/gossip/gossip.h"

namespace dpwa::collective {

// The run of this node ends, because of what() says.
class RunEnds : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Of a node. Together: with a group, or while it waits for the next one. Apart: by gossip
// averaging.
enum class Phase { made, together, apart, left };

// Brings a node into its first group and into each next one, or lets it train apart meanwhile. It
// waits until a group has formed and says in the log whom it waits for; in the group all members
// compare what they must have in common, and get one state. One (training) thread.
class Starter {
 public:
  // These outlive it. `engine`: its name. `gossip`: of a node that may train apart; null: it may
  // not.
  Starter(const Config& config, const std::string& engine, Replica& replica,
          StateTransfer& transfer, StepRecord& steps, Gossip* gossip);

  // A setting that must be the same on all nodes.
  void require_same(const std::string& what, const std::string& value) {
    settings_.emplace_back(what, value);
  }
  // All of them, and the model as one number, for nodes that have not met yet.
  Settings terms() const;
  // All of them, and each tensor of the model: what members of a group compare.
  Signature question() const;

  // These return how this node trains from now on; left: it was told to stop while it waited. They
  // throw RunEnds where it cannot go on.
  // The first group. Throws std::runtime_error when it has not formed until then.
  void first(GroupSession& session, TimePoint until);
  // The next one, in place of one that has failed. `why`: of this, for the log; none: it is said.
  // Empty: not known yet.
  Phase next(GroupSession& session, std::optional<std::string> why = std::nullopt);
  // The next one, which all members have formed beside the one that they have.
  Phase grow(GroupSession& session);
  Phase go_apart(GroupSession& session, const std::string& why);
  // From apart, once a group has formed.
  Phase come_together(GroupSession& session);
  void drop(GroupSession& session);  // its group can no longer be used
  // A group has failed, and this node does not go on without it.
  [[noreturn]] void give_up(GroupSession& session, const CollectiveError& error) const;

  // Ends a wait for a group soon, as if the node were told to stop. Any thread.
  void break_off() { broken_off_ = true; }

  // Of the steps that come now. Changes between two of them alone.
  Place place() const { return place_; }
  void take_place(const GroupSession& session) { place_ = session.place(); }

 private:
  bool told_to_stop(const GroupFormer& former, WaitReasons& reasons) const;
  void enter(GroupSession& session, GroupFormer::Formed formed);
  void share_lineage(const StepGroup& group, int source);

  const Config& config_;
  Replica& replica_;
  StateTransfer& transfer_;
  StepRecord& steps_;
  Gossip* const gossip_;
  Settings settings_;
  Place place_;
  std::string warned_;  // of a minority
  std::atomic<bool> broken_off_ = false;
  bool unnamed_ = false;  // trains apart, and has not said who is gone
};

// Whether a node can do without the group that failed. False: settings or models differ.
inline bool may_go_on(const CollectiveError& error) {
  return error.failure() != Failure::mismatch;
}

std::string at_clock(double clock);  // "clock 7"

}  // namespace dpwa::collective
