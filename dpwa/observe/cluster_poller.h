#pragma once

#include <thread>
#include <utility>

#include "dpwa/base/threads.h"
#include "dpwa/observe/cluster_query.h"
#include "dpwa/observe/cluster_view.h"

namespace dpwa::observe {

// Asks the processes of a cluster about once a second, on a thread of its own, and keeps the view
// of them. Any thread.
class ClusterPoller {
 public:
  explicit ClusterPoller(Asking asking);
  ~ClusterPoller();  // waits for the query under way: at most twice its timeout
  ClusterPoller(const ClusterPoller&) = delete;
  ClusterPoller& operator=(const ClusterPoller&) = delete;

  // What `look` makes of the view, which does not change meanwhile.
  template <class Look>
  auto view(Look look) const {
    const MutexLock lock(mutex_);
    return look(std::as_const(view_));
  }

 private:
  void run();

  const Asking asking_;
  mutable Mutex mutex_;
  Condition changed_;
  bool stopped_ DPWA_GUARDED_BY(mutex_) = false;
  ClusterView view_ DPWA_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dpwa::observe
