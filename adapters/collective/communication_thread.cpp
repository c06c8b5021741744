#include "adapters/collective/communication_thread.h"

#include <utility>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"

namespace dpwa::collective {

CommunicationThread::CommunicationThread()
    : thread_([this] { run_or_end("the thread of the communication", [this] { work(); }); }) {}

CommunicationThread::~CommunicationThread() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void CommunicationThread::run(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    if (failure_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void CommunicationThread::wait() {
  MutexLock lock(mutex_);
  while (!tasks_.empty() || busy_) changed_.wait(lock);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CommunicationThread::work() {
  name_thread("dpwa-reduce");
  MutexLock lock(mutex_);
  while (true) {
    while (!ends_ && tasks_.empty()) changed_.wait(lock);
    if (ends_) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failure) {
      failure_ = failure;
      tasks_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace dpwa::collective
