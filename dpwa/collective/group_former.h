#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "dpwa/base/threads.h"
#include "dpwa/collective/group_notes.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_node.h"
#include "dpwa/log/log.h"
#include "dpwa/members/group_members.h"

namespace dpwa::collective {

// Forms the groups that the views ask for (members/view_engine.h): one for the
// processes of the latest view, when this node has no usable one, or beside the one that it has,
// when another node joins. The members meet over the entries of
// their node. On a thread of its own; used by the
// training thread.
class GroupFormer {
 public:
  // All but the connector outlive it.
  GroupFormer(const Config& config, LocalProcess& local, group::GroupNode& node, NoticeBoard& board,
              Connector connector);
  ~GroupFormer();
  GroupFormer(const GroupFormer&) = delete;
  GroupFormer& operator=(const GroupFormer&) = delete;

  // This node has no usable group, and needs one.
  void seek();

  struct Formed {
    GroupMembers membership;
    std::shared_ptr<StepGroup> group;
    bool newcomer = false;  // to a run that is under way, or at its start
  };
  // The number of the group that waits to be taken; 0: none.
  std::uint64_t formed() const;
  // Takes that group; none within `limit`, or when `given_up` returns true.
  std::optional<Formed> take(Duration limit, const std::function<bool()>& given_up);

  // The reason why this node may not continue as the group; empty: it may, or does not know yet.
  std::string minority() const;
  // The node with which this one can never form its first group, and the reason, such as other
  // settings; empty: none is known.
  std::string stranger() const;
  // The reason why these nodes can never form a group, on all of them alike, such as two that share
  // a GPU; empty: none is known.
  std::string refusal() const;
  // The result of the last attempt, and the missing nodes, as text.
  std::string problem() const;

 private:
  using State = group::GroupNode::State;
  struct Attempt;

  void work();
  void look();
  void note_words(const State& state, bool seeks);
  void ask_backends(const State& state);
  void tell_of_strangers(const State& state);
  void tell_of_failure(const std::string& what);
  void drop_stale(const State& state);
  std::optional<GroupMembers> wanted(const State& state, bool seeks) const;
  void pursue(const State& state, const GroupMembers& wanted);
  void begin(const State& state, const GroupMembers& members);
  void harvest();
  void drop_attempt();
  void ask_for_view(const State& state);

  const Config& config_;
  LocalProcess& local_;
  group::GroupNode& node_;
  NoticeBoard& board_;
  const Connector connector_;
  // Of the thread:
  std::shared_ptr<Attempt> attempt_;
  std::uint64_t used_ = 0;  // the number of the last group that was tried
  TimePoint asked_{};       // for a view, the last time
  unsigned failures_ = 0;   // in a row
  const TimePoint begun_;
  std::map<std::string, TimePoint> told_;        // when nodes were named as strangers
  std::map<std::string, std::string> backends_;  // of nodes that do not speak to this one
  TimePoint looked_{};                           // for these
  LogLimiter limiter_;

  mutable Mutex mutex_;
  Condition changed_;
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;
  bool seeks_ DPWA_GUARDED_BY(mutex_) = false;
  // The group that the training thread uses, while it does.
  GroupMembers current_ DPWA_GUARDED_BY(mutex_);
  std::weak_ptr<StepGroup> current_group_ DPWA_GUARDED_BY(mutex_);
  std::optional<Formed> formed_ DPWA_GUARDED_BY(mutex_);
  std::string minority_ DPWA_GUARDED_BY(mutex_);
  std::string stranger_ DPWA_GUARDED_BY(mutex_);
  std::string refusal_ DPWA_GUARDED_BY(mutex_);
  std::string problem_ DPWA_GUARDED_BY(mutex_);
  std::string missing_ DPWA_GUARDED_BY(mutex_);
  std::thread thread_;
};

// How an attempt to form a group has ended.
struct Attempted {
  std::unique_ptr<StepGroup> group;  // null: it failed
  std::string problem;
  bool hopeless = false;  // the next one fails in the same way, on all members
};
Attempted attempt(const Connector& connector, const GroupOptions& options,
                  const std::shared_ptr<group::SharedEntries>& entries);

// Why no group has formed, as the text of an error.
std::string not_together(const std::string& problem);

}  // namespace dpwa::collective
