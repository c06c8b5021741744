#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/collective/adaptive_timeout.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/membership_notes.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/config.h"
#include "dpwa/log/log.h"
#include "dpwa/net/local_process.h"

namespace dpwa::collective {

// Watches the waits for the other members of a group, on a thread of its own. An exchange on Gloo
// never ends by itself when a rank is stopped, hangs, or loses its network. When the training
// thread has waited longer than is usual in this run, the watch asks the other members for their
// status, names late ones in the log, and aborts the group when one is lost.
class RankWatch {
 public:
  // All outlive it.
  RankWatch(const Config& config, LocalProcess& local, NoticeBoard& board,
            AdaptiveTimeout& patience, const GroupMembers& membership,
            std::shared_ptr<ProcessGroup> group);
  ~RankWatch();  // waits for an answer that is under way
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // Around an exchange, by the training thread. `what`: for the log and for the status document.
  void begin_wait(const std::string& what);
  void end_wait();

  // Ends without waiting for that.
  void stop();
  bool stopped() const;  // and the thread is at its end

  // The node that was given up, and the reason; empty: none yet.
  std::string lost() const;

 private:
  void work();
  void look(const std::string& what, Duration waited);

  const Config& config_;
  LocalProcess& local_;
  NoticeBoard& board_;
  AdaptiveTimeout& patience_;
  const std::shared_ptr<ProcessGroup> group_;
  const GroupMembers membership_;
  std::vector<std::size_t> others_;  // places of the other members
  Lateness lateness_;                // of the thread
  LogLimiter limiter_;               // of the thread
  mutable Mutex mutex_;
  Condition changed_;
  std::optional<TimePoint> since_ DPWA_GUARDED_BY(mutex_);
  std::optional<TimePoint> begun_ DPWA_GUARDED_BY(mutex_);  // of the first wait since end_wait()
  std::string what_ DPWA_GUARDED_BY(mutex_);
  std::string lost_ DPWA_GUARDED_BY(mutex_);
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;
  bool ended_ DPWA_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace dpwa::collective
