#include "adapters/collective/engine/operation_queue.h"

#include <utility>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"

namespace dpwa::collective {

OperationQueue::OperationQueue() {
  thread_ = start_background_thread(
      [this] { run_or_end("the thread of the operations", [this] { work(); }); });
}

void OperationQueue::end() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mutex_);
  while (performs_) changed_.wait(lock);
}

void OperationQueue::add(std::shared_ptr<Operation> operation, bool prompt) {
  std::exception_ptr problem;
  {
    const MutexLock lock(mutex_);
    problem = problem_;
    if (!problem) {
      operation->prompt_ = prompt;
      prompt_ += prompt ? 1 : 0;
      waiting_.push_back(operation);
    }
  }
  if (problem) {
    operation->ended(problem);
    operation->ended_.store(true, std::memory_order_release);
  } else if (prompt) {
    changed_.notify_all();
  }
}

void OperationQueue::begin(Operation& operation) {
  if (operation.has_ended()) return;
  {
    const MutexLock lock(mutex_);
    for (const auto& each : waiting_) {
      if (each.get() != &operation || each->prompt_) continue;
      each->prompt_ = true;
      ++prompt_;
    }
  }
  changed_.notify_all();
}

bool OperationQueue::wait(const Operation& operation, TimePoint until) {
  MutexLock lock(mutex_);
  while (!operation.has_ended()) {
    if (!changed_.wait_until(lock, until)) return operation.has_ended();
  }
  return true;
}

void OperationQueue::finish(const Operation& operation) {
  MutexLock lock(mutex_);
  while (!operation.has_ended()) {
    if (performs_ || waiting_.empty()) {
      changed_.wait(lock);
    } else {
      perform_first(lock);
    }
  }
}

void OperationQueue::fail(const std::exception_ptr& problem) {
  std::deque<std::shared_ptr<Operation>> dropped;
  {
    const MutexLock lock(mutex_);
    if (!problem_) problem_ = problem;
    dropped.swap(waiting_);
    prompt_ = 0;
  }
  for (const auto& each : dropped) {
    each->ended(problem);
    each->ended_.store(true, std::memory_order_release);
  }
  {
    const MutexLock lock(mutex_);  // whoever has just looked waits by now
  }
  changed_.notify_all();
}

void OperationQueue::perform_first(MutexLock& lock) {
  const std::shared_ptr<Operation> operation = std::move(waiting_.front());
  waiting_.pop_front();
  prompt_ -= operation->prompt_ ? 1 : 0;
  performs_ = true;
  lock.unlock();
  std::exception_ptr problem;
  try {
    operation->perform();
  } catch (...) {
    problem = std::current_exception();
  }
  operation->ended(problem);
  operation->ended_.store(true, std::memory_order_release);
  if (problem) fail(problem);
  lock.lock();
  performs_ = false;
  changed_.notify_all();
}

void OperationQueue::work() {
  name_thread("dpwa-reduce");
  MutexLock lock(mutex_);
  while (!ends_) {
    if (prompt_ > 0 && !performs_) {
      perform_first(lock);
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace dpwa::collective
