#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <thread>

#include "dpwa/base/threads.h"

namespace dpwa::collective {

// Runs blocking exchanges one after the other, in the order of their submission, while the training
// thread continues. All members must submit them in the same order. One caller.
class CommunicationThread {
 public:
  CommunicationThread();
  // Waits for the exchange that runs; drops those that have not begun.
  ~CommunicationThread();

  void run(std::function<void()> task);
  // Waits until all are done. Rethrows the first failure; the exchanges after it were not begun.
  void wait();

 private:
  void work();

  Mutex mutex_;
  Condition changed_;
  std::deque<std::function<void()>> tasks_ DPWA_GUARDED_BY(mutex_);
  bool busy_ DPWA_GUARDED_BY(mutex_) = false;
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ DPWA_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dpwa::collective
