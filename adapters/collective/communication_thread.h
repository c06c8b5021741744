#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace dpwa::collective {

// Runs blocking exchanges one after the other, in the order in which they were given, while the
// training thread goes on: all members have to make them in the same order. One caller.
class CommunicationThread {
 public:
  CommunicationThread();
  // Waits for what runs; what has not begun is dropped.
  ~CommunicationThread();

  void run(std::function<void()> task);
  // Until all are done. Throws what the first that failed threw; those after it were not begun.
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
