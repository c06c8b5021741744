#include "dpwa/collectives/operation_queue.h"

#include <chrono>
#include <utility>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/trace.h"

namespace dpwa::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Until the thread performs an operation for which nobody waits.
constexpr std::chrono::milliseconds patience(2);
// Without operations, until the thread sleeps without looking.
constexpr int looks_before_rest = 50;

}  // namespace

OperationQueue::OperationQueue() {
  thread_ = start_background_thread(
      [this] { run_or_end("the thread of the operations", [this] { work(); }); });
}

void OperationQueue::end() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  begins_.notify_all();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mutex_);
  ++waiters_;
  while (under_way_) ended_.wait(lock);
  --waiters_;
}

void OperationQueue::add(std::shared_ptr<Operation> operation, bool prompt) {
  std::exception_ptr problem;
  bool wakes = false;
  {
    const MutexLock lock(mutex_);
    problem = problem_;
    wakes = prompt || rests_;
    if (!problem) {
      operation->prompt_ = prompt;
      prompt_ += prompt ? 1 : 0;
      waiting_.push_back(operation);
    }
  }
  if (problem) {
    operation->end(problem);
  } else if (wakes) {
    begins_.notify_all();
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
  begins_.notify_all();
}

bool OperationQueue::wait(const Operation& operation, TimePoint until) {
  MutexLock lock(mutex_);
  ++waiters_;
  while (!operation.has_ended() && ended_.wait_until(lock, until)) {
  }
  --waiters_;
  return operation.has_ended();
}

void OperationQueue::finish(const Operation& operation) {
  if (operation.has_ended()) return;
  MutexLock lock(mutex_);
  while (!operation.has_ended()) {
    if (under_way_ || waiting_.empty()) {
      ++waiters_;
      ended_.wait(lock);
      --waiters_;
    } else {
      const auto first = take_first();
      lock.unlock();
      perform(*first);
      lock.lock();
      performed();
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
  for (const auto& each : dropped) each->end(problem);
  const MutexLock lock(mutex_);
  tell_ended();
}

void OperationQueue::tell_ended() {
  if (waiters_ > 0) ended_.notify_all();
}

std::shared_ptr<Operation> OperationQueue::take_first() {
  std::shared_ptr<Operation> operation = std::move(waiting_.front());
  waiting_.pop_front();
  prompt_ -= operation->prompt_ ? 1 : 0;
  under_way_ = operation;
  return operation;
}

bool OperationQueue::performs() {
  const MutexLock lock(mutex_);
  return under_way_ && !under_way_->has_ended();
}

void OperationQueue::perform(Operation& operation) {
  const std::string what = own_trace().is_on() ? operation.what() : std::string();
  const TraceScope traced(Track::group, "collective operation", what);
  std::exception_ptr problem;
  try {
    operation.perform_();
  } catch (...) {
    problem = std::current_exception();
  }
  operation.end(problem);
  if (problem) fail(problem);
}

void OperationQueue::performed() {
  under_way_ = nullptr;
  if (prompt_ > 0) begins_.notify_all();
  tell_ended();
}

void OperationQueue::work() {
  name_thread("dpwa-reduce");
  const Operation* seen = nullptr;  // the first one, when it was looked at last
  int idle = 0;                     // looks without one
  MutexLock lock(mutex_);
  while (!ends_) {
    const Operation* const first = waiting_.empty() ? nullptr : waiting_.front().get();
    const bool is_due = prompt_ > 0 || (first != nullptr && first == seen);
    seen = first;
    idle = first == nullptr && !under_way_ ? idle + 1 : 0;
    if (is_due && !under_way_) {
      const auto due = take_first();
      lock.unlock();
      perform(*due);
      lock.lock();
      performed();
      seen = nullptr;
    } else if (idle > looks_before_rest) {
      rests_ = true;
      begins_.wait(lock);
      rests_ = false;
      idle = 0;
    } else {
      begins_.wait_until(lock, SteadyClock::now() + patience);
    }
  }
}

}  // namespace dpwa::collectives
