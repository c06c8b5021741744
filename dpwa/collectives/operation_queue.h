#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"

namespace dpwa::collectives {

// One operation of a group, which ends once. Any thread.
class Operation {
 public:
  virtual ~Operation() = default;
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  friend class OperationQueue;
  virtual void perform() = 0;                                 // blocks; throws
  virtual std::string what() const { return {}; }             // for a trace
  virtual void ended(const std::exception_ptr& problem) = 0;  // null: well; throws nothing

  bool prompt_ = false;  // of the queue's mutex
  std::atomic<bool> ended_ = false;
};

// Performs blocking operations in the order in which they come. Those that take long are performed
// by a thread of the queue, while their caller goes on; others by the thread that waits for them,
// which saves two changes of threads, or after some milliseconds by that of the queue: other
// members may need an operation before this one waits for it. After a failure the later ones end
// with the same one. Any thread.
class OperationQueue {
 public:
  OperationQueue();
  ~OperationQueue() { end(); }
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // Performs nothing more. Waits for the operation under way, which must end soon.
  void end();

  // `prompt`: begins at once.
  void add(std::shared_ptr<Operation> operation, bool prompt);
  // The thread of the queue begins with it at once.
  void begin(Operation& operation);
  // Until it has ended; false: not by then.
  bool wait(const Operation& operation, TimePoint until);
  // Performs what comes before it, and the operation, unless another thread does.
  void finish(const Operation& operation);
  // Whether an operation is under way, and has not ended.
  bool performs();
  // The operations that have not begun, and later ones, end with this.
  void fail(const std::exception_ptr& problem);

 private:
  void work();
  std::shared_ptr<Operation> take_first() DPWA_REQUIRES(mutex_);
  void perform(Operation& operation);
  void performed() DPWA_REQUIRES(mutex_);
  static void end_of(Operation& operation, const std::exception_ptr& problem);
  void tell_ended() DPWA_REQUIRES(mutex_);

  Mutex mutex_;
  Condition begins_;  // for the thread of the queue
  Condition ended_;   // for those that wait
  std::deque<std::shared_ptr<Operation>> waiting_ DPWA_GUARDED_BY(mutex_);
  std::size_t prompt_ DPWA_GUARDED_BY(mutex_) = 0;                // of those that wait
  std::size_t waiters_ DPWA_GUARDED_BY(mutex_) = 0;               // on ended_
  bool rests_ DPWA_GUARDED_BY(mutex_) = false;                    // the thread, until it is told
  std::shared_ptr<Operation> under_way_ DPWA_GUARDED_BY(mutex_);  // null: none
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;
  std::exception_ptr problem_ DPWA_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dpwa::collectives
