#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/next_group.h"
#include "adapters/collective/status_poller.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/config.h"
#include "dpwa/log/log.h"
#include "dpwa/net/local_process.h"

namespace dpwa::collective {

struct Attempt;

// Brings this node into its next group while the trainer continues, on a thread of its own: reads
// the status of the other nodes, carries out the decision of next_group(), and keeps the new group
// until the trainer takes it. Called by the trainer's thread.
class Assembler {
 public:
  // All outlive it.
  Assembler(const Config& config, LocalProcess& local, NoticeBoard& board,
            AdaptiveTimeout& patience);
  ~Assembler();
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;

  // For a node without a usable group: looks for the next one until take(). `admits`: it is between
  // two steps, where new nodes can be admitted.
  void seek(bool admits);
  // In a complete group: forms the next one, which includes the new nodes.
  void admit();
  void rest();                   // no node waits for admission any more
  bool hosts_admission() const;  // admits nodes, as the first member
  // In a complete group, for its first member: whether nodes wait to be admitted.
  bool newcomers_wait() const;

  struct Formed {
    GroupMembers membership;
    std::unique_ptr<ProcessGroup> group;
    bool newcomer = false;  // this node was in no group, or its group has gone on without it
  };
  // The epoch of the group that waits to be taken; 0: none.
  std::uint64_t formed() const;
  // Takes that group; none within `limit`, or when `given_up` returns true.
  std::optional<Formed> take(Duration limit, const std::function<bool()>& given_up);

  // The reason why this node may not continue as the group; empty: it may, or does not know yet.
  std::string minority() const;
  // The node with which this one can never form its first group, and the reason, such as other
  // settings; empty: none is known.
  std::string stranger() const;
  // The result of the last attempt, and the missing nodes, as text.
  std::string problem() const;

 private:
  enum class Task { rest, seek, admit };

  void work();
  void tell_of_failure(const std::string& what);
  void look_for_newcomers();
  void tell_of_strangers(const std::vector<MemberView>& views);
  void drop_untaken();
  void look_for_group(Task task, bool admits);
  void act(const NextGroup& next, bool newcomer);
  void begin(const NextGroup& next, bool newcomer);
  void drop_attempt();
  bool is_new(const NextGroup& next) const;
  bool attempt_is_idle(const std::vector<MemberView>& views) const;
  void harvest();

  const Config& config_;
  LocalProcess& local_;
  NoticeBoard& board_;
  const std::shared_ptr<const Engine> engine_;
  StatusPoller status_poller_;             // of the thread
  std::shared_ptr<Attempt> attempt_;       // of the thread
  std::uint64_t failed_ = 0;               // of the thread: the last epoch that failed
  TimePoint looked_{};                     // of the thread
  std::map<std::string, TimePoint> told_;  // of the thread: when nodes were named as strangers
  LogLimiter limiter_;                     // of the thread

  mutable Mutex mutex_;
  Condition changed_;
  Task task_ DPWA_GUARDED_BY(mutex_) = Task::rest;
  bool admits_ DPWA_GUARDED_BY(mutex_) = false;
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;
  bool newcomers_wait_ DPWA_GUARDED_BY(mutex_) = false;
  std::optional<Formed> formed_ DPWA_GUARDED_BY(mutex_);
  TimePoint formed_at_ DPWA_GUARDED_BY(mutex_){};
  GroupMembers before_ DPWA_GUARDED_BY(mutex_);  // the previous group
  std::string minority_ DPWA_GUARDED_BY(mutex_);
  std::string stranger_ DPWA_GUARDED_BY(mutex_);
  std::string problem_ DPWA_GUARDED_BY(mutex_);
  std::string missing_ DPWA_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dpwa::collective
