#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"

namespace dpwa::collective {

// One operation of a group, which ends once. Any thread.
class Operation {
 public:
  virtual ~Operation() = default;
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  friend class OperationQueue;
  virtual void perform() = 0;                                  // blocks; throws
  virtual void ended(const std::exception_ptr& problem) = 0;  // null: well. Throws nothing

  bool prompt_ = false;  // of the queue's mutex
  std::atomic<bool> ended_ = false;
};

// Performs blocking operations in the order in which they come: those that take long on a thread of
// its own, while their caller goes on, and others on the thread that waits for them, which saves
// two changes of threads. After a failure the later ones end with the same one. Any thread.
class OperationQueue {
 public:
  OperationQueue();
  ~OperationQueue() { end(); }

  // Performs nothing more. Waits for the operation under way, which must end soon.
  void end();

  // `prompt`: begins at once.
  void add(std::shared_ptr<Operation> operation, bool prompt);
  // From now on it will end without somebody who waits for it.
  void begin(Operation& operation);
  // Until it has ended; false: not by then.
  bool wait(const Operation& operation, TimePoint until);
  // Performs what comes before it, and the operation, unless another thread does.
  void finish(const Operation& operation);
  // The operations that have not begun, and later ones, end with this.
  void fail(const std::exception_ptr& problem);

 private:
  void work();
  void perform_first(MutexLock& lock) DPWA_REQUIRES(mutex_);

  Mutex mutex_;
  Condition changed_;
  std::deque<std::shared_ptr<Operation>> waiting_ DPWA_GUARDED_BY(mutex_);
  std::size_t prompt_ DPWA_GUARDED_BY(mutex_) = 0;  // of those that wait
  bool performs_ DPWA_GUARDED_BY(mutex_) = false;
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;
  std::exception_ptr problem_ DPWA_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dpwa::collective
