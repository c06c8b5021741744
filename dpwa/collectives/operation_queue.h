#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"

namespace dpwa::collectives {

// One operation of a group, which ends once. Any thread.
class Operation {
 public:
  // `perform`: blocks; throws. It lives until the operation has ended. `bytes`, `name`: for a
  // trace.
  explicit Operation(std::function<void()> perform, std::size_t bytes = 0, std::string name = {})
      : perform_(std::move(perform)), bytes_(bytes), name_(std::move(name)) {}

  bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  // Once it has ended: the failure; null: none.
  const std::exception_ptr& problem() const { return problem_; }
  void rethrow() const {
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  friend class OperationQueue;
  void end(const std::exception_ptr& problem) {
    perform_ = nullptr;
    problem_ = problem;
    ended_.store(true, std::memory_order_release);
  }
  std::string what() const {
    return (name_.empty() ? "" : name_ + ", ") + std::to_string(bytes_) + " bytes";
  }

  std::function<void()> perform_;
  const std::size_t bytes_;
  const std::string name_;
  std::exception_ptr problem_;
  bool prompt_ = false;  // of the queue's mutex
  std::atomic<bool> ended_ = false;
};

// An operation of this size goes on beside its caller. Smaller ones are over before another thread
// has been woken for them.
inline constexpr std::size_t large_bytes = std::size_t{256} << 10;

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
