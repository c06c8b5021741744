#include "adapters/parallel/device_threads.h"

#include <ATen/ThreadLocalState.h>

#include <utility>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"

namespace dpwa {

DeviceThreads::DeviceThreads(std::size_t devices) : jobs_(devices) {
  try {
    for (std::size_t device = 1; device < devices; ++device)
      threads_.push_back(start_background_thread([this, device] { work(device); }));
  } catch (...) {
    end();
    throw;
  }
}

DeviceThreads::~DeviceThreads() {
  end();
}

void DeviceThreads::end() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void DeviceThreads::work(std::size_t device) {
  name_thread("dpwa-device");
  MutexLock lock(mutex_);
  while (true) {
    while (!ends_ && !jobs_[device]) changed_.wait(lock);
    if (!jobs_[device]) return;
    const Job& job = jobs_[device];  // unchanged until it has run
    lock.unlock();
    run_or_end("the thread of a device", job);
    lock.lock();
    jobs_[device] = nullptr;
    changed_.notify_all();
  }
}

void DeviceThreads::begin(std::size_t device, Job job) {
  {
    const MutexLock lock(mutex_);
    jobs_[device] = std::move(job);
  }
  changed_.notify_all();
}

void DeviceThreads::wait(std::size_t device) {
  MutexLock lock(mutex_);
  while (jobs_[device]) changed_.wait(lock);
}

void DeviceThreads::at_once(std::size_t devices, const std::function<void(std::size_t)>& job) {
  const at::ThreadLocalState state;
  std::vector<std::exception_ptr> failures(devices);
  const auto guarded = [&](std::size_t device) {
    try {
      job(device);
    } catch (...) {
      failures[device] = std::current_exception();
    }
  };
  for (std::size_t device = 1; device < devices; ++device) {
    begin(device, [&, device] {
      const at::ThreadLocalStateGuard guard(state);
      guarded(device);
    });
  }
  if (devices > 0) guarded(0);
  for (std::size_t device = 1; device < devices; ++device) wait(device);
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

void DeviceThreads::in_turn(std::size_t devices, const std::function<void(std::size_t)>& job) {
  const at::ThreadLocalState state;
  for (std::size_t device = 0; device < devices; ++device) {
    if (device == 0) {
      job(device);
      continue;
    }
    std::exception_ptr failure;
    begin(device, [&] {
      const at::ThreadLocalStateGuard guard(state);
      try {
        job(device);
      } catch (...) {
        failure = std::current_exception();
      }
    });
    wait(device);
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace dpwa
