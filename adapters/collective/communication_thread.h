#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

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

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_, as all below
  bool busy_ = false;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace dpwa::collective
