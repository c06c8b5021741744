#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dpwa {

// Starts a thread that blocks all signals. Signals belong to the program, and its handlers must not
// run on a thread of this library.
std::thread start_background_thread(std::function<void()> body);

// The processors that the calling thread may run on, ascending; never empty.
std::vector<int> usable_processors();

}  // namespace dpwa

// Attributes for clang's thread-safety analysis (-Wthread-safety): they state which mutex guards a
// member and which one a function needs. Other compilers see nothing. The mutexes of libstdc++ have
// no such attributes, so the types below wrap them.
#if defined(__clang__)
#define DPWA_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define DPWA_THREAD_ATTRIBUTE(x)
#endif
#define DPWA_GUARDED_BY(mutex) DPWA_THREAD_ATTRIBUTE(guarded_by(mutex))
#define DPWA_REQUIRES(mutex) DPWA_THREAD_ATTRIBUTE(requires_capability(mutex))

namespace dpwa {

// std::mutex with the attributes. Lock it with MutexLock.
class DPWA_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() DPWA_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() DPWA_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex until the end of its scope.
class DPWA_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DPWA_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() DPWA_THREAD_ATTRIBUTE(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // Between these two calls the mutex is free.
  void unlock() DPWA_THREAD_ATTRIBUTE(release_capability()) { lock_.unlock(); }
  void lock() DPWA_THREAD_ATTRIBUTE(acquire_capability()) { lock_.lock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

// A condition variable. Callers loop over their condition themselves: the analysis looks at the
// body of a predicate without the lock that it runs under.
//   while (!ready_) changed_.wait(lock);
class Condition {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }
  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  // False once `until` has passed.
  bool wait_until(MutexLock& lock, std::chrono::steady_clock::time_point until) {
    return condition_.wait_until(lock.lock_, until) == std::cv_status::no_timeout;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace dpwa
