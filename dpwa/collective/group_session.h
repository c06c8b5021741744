#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/collective/group_former.h"
#include "dpwa/collective/group_notes.h"
#include "dpwa/collective/rank_watch.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/config/config.h"
#include "dpwa/config/place.h"
#include "dpwa/group/group_node.h"
#include "dpwa/members/group_members.h"
#include "dpwa/net/local_process.h"

namespace dpwa::collective {

// The nodes that step together with this one: the views, its group, the watch over that group, and
// the search for the next one. One (training) thread.
class GroupSession {
 public:
  // `config` and `local` outlive it. `inbox`: that of a handler of the server.
  GroupSession(const Config& config, LocalProcess& local, std::shared_ptr<group::Inbox> inbox,
               Settings terms, Connector connector);
  ~GroupSession();

  bool together() const { return group_ != nullptr; }
  // While together.
  StepGroup& group() { return *group_; }
  const StepGroup& group() const { return *group_; }
  RankWatch& watch() { return *watch_; }
  Place place() const;
  const std::string& name_of(int rank) const;

  GroupFormer& former() { return former_; }

  void take_up(GroupFormer::Formed formed);
  void drop();  // the group can no longer be used
  // Its members have one state, after this step.
  void begin_at(std::uint64_t step);
  // The exchange of this step has ended well here. False: the others may do without it, because
  // this node is not in their view, or because they decide on the next one without an end.
  bool complete(std::uint64_t step);
  // The members have compared their states in this step: equal digests mean equal states.
  void note_state(std::uint64_t step, std::uint64_t digest);

  void note_apart(bool apart);
  void note_left();  // this node will join no further group
  // Drops the group, and waits until the views of the others are without this node. Some seconds at
  // most.
  void leave();

  // In a failed group: the member that was lost, and the reason; empty: not known (yet).
  // lost_node() waits for this news for a moment.
  std::string lost_node() const;
  std::string suspect() const;
  // A member of the last group that is gone, also once the group was dropped; empty: not known yet.
  std::string gone() const;
  std::string missed() const;  // members of the last group that this one lacks, quoted; or empty

 private:
  // False: that view is no longer the latest one.
  bool begin_in(std::uint64_t view);

  const Config& config_;
  NoticeBoard board_;
  UsualTime waits_;  // in exchanges
  group::GroupNode node_;
  GroupFormer former_;
  GroupMembers membership_;
  GroupMembers before_;     // of the last group
  std::uint64_t view_ = 0;  // the number of the one in which the last step was completed
  // The step after which the members of the group have one state, until a view knows it.
  std::optional<std::uint64_t> begins_;
  std::shared_ptr<StepGroup> group_;
  std::unique_ptr<RankWatch> watch_;
};

}  // namespace dpwa::collective
