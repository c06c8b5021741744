#pragma once

#include <map>
#include <string>
#include <utility>

#include "dpwa/base/threads.h"

namespace dpwa {

// Values that a back end adds to the status document of its node, or that replace values of it:
// JSON values by key. Any thread.
class StatusNotes {
 public:
  void set(const std::string& key, std::string json) {
    const MutexLock lock(mutex_);
    notes_.insert_or_assign(key, std::move(json));
  }
  std::map<std::string, std::string> all() const {
    const MutexLock lock(mutex_);
    return notes_;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> notes_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa
