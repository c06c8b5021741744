#pragma once

#include <map>
#include <string>
#include <utility>

#include "dpwa/base/threads.h"

namespace dpwa {

// What a back end adds to the status document of its node, or states in place of what the document
// has: JSON values by key. Any thread.
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
