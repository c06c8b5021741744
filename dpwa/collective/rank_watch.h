#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "dpwa/base/threads.h"
#include "dpwa/base/usual_time.h"
#include "dpwa/collective/group_notes.h"
#include "dpwa/collective/lateness.h"
#include "dpwa/collective/step_group.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_node.h"
#include "dpwa/members/group_members.h"

namespace dpwa::collective {

// Watches the waits for the other members of a group, on a thread of its own. An exchange on Gloo
// never ends by itself when a rank is stopped, hangs, or loses its network. When the training
// thread has waited longer than is usual in this run, the watch looks at what the other members say
// of themselves, names late ones in the log, and ends the exchange when one is lost.
class RankWatch {
 public:
  // All outlive it. `waits`: those of the run so far; it alone uses them while it lives.
  RankWatch(const Config& config, group::GroupNode& node, NoticeBoard& board, UsualTime& waits,
            const GroupMembers& membership, std::shared_ptr<StepGroup> group);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // Around an exchange, by the training thread. `what`: for the log and for the status document.
  void begin_wait(const std::string& what);
  void end_wait();

  // The node that was given up, and the reason; empty: none yet.
  std::string lost() const;

 private:
  void work();
  void look(const std::string& what, Duration waited);
  void note_wait(bool waits);

  group::GroupNode& node_;
  NoticeBoard& board_;
  const std::shared_ptr<StepGroup> group_;
  const GroupMembers membership_;
  Lateness lateness_;  // of the thread
  mutable Mutex mutex_;
  Condition changed_;
  UsualTime& waits_ DPWA_GUARDED_BY(mutex_);
  std::optional<TimePoint> since_ DPWA_GUARDED_BY(mutex_);
  std::optional<TimePoint> begun_ DPWA_GUARDED_BY(mutex_);  // of the first wait since end_wait()
  std::string what_ DPWA_GUARDED_BY(mutex_);
  std::string lost_ DPWA_GUARDED_BY(mutex_);
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace dpwa::collective
