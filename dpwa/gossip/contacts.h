#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "dpwa/base/threads.h"

namespace dpwa {

// The names of callers, from one thread to another. A name waits once, however often its node calls
// before it is taken. Beyond max_names no further name is noted; its node will call again.
class Contacts {
 public:
  static constexpr std::size_t max_names = 1024;

  // True: no other name was waiting, so the other thread has to be woken.
  bool add(const std::string& name, std::uint64_t incarnation) {
    const MutexLock lock(mutex_);
    const bool first = waiting_.empty();
    if (waiting_.size() >= max_names && !waiting_.contains(name)) return false;
    std::uint64_t& held = waiting_[name];
    held = std::max(held, incarnation);
    return first;
  }

  // Name and highest incarnation of each.
  std::map<std::string, std::uint64_t> take() {
    const MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::uint64_t> waiting_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa
