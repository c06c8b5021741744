#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "dpwa/base/threads.h"

namespace dpwa {

// One thread for each device of a process; device 0 uses the caller's thread. The threads live as
// long as this object, so that their thread-local set-up happens once. One caller.
class DeviceThreads {
 public:
  explicit DeviceThreads(std::size_t devices);
  ~DeviceThreads();
  DeviceThreads(const DeviceThreads&) = delete;
  DeviceThreads& operator=(const DeviceThreads&) = delete;

  // job(k) on the thread of device k, for k from 0 to devices - 1, all at once. They see the
  // caller's thread-local state of LibTorch. Rethrows the first failure, by device, once all are
  // done.
  void at_once(std::size_t devices, const std::function<void(std::size_t)>& job);
  // The same, one after the other.
  void in_turn(std::size_t devices, const std::function<void(std::size_t)>& job);

 private:
  using Job = std::function<void()>;

  void end();
  void work(std::size_t device);
  void begin(std::size_t device, Job job);
  void wait(std::size_t device);

  Mutex mutex_;
  Condition changed_;
  std::vector<Job> jobs_ DPWA_GUARDED_BY(mutex_);  // by device; empty: none
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace dpwa
