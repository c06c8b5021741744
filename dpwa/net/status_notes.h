#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace dpwa {

// What a back end adds to the status document of its node, or states in place of what the document
// has: JSON values by key. Any thread.
class StatusNotes {
 public:
  void set(const std::string& key, std::string json) {
    const std::lock_guard lock(mutex_);
    notes_.insert_or_assign(key, std::move(json));
  }
  std::map<std::string, std::string> all() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> notes_;  // guarded by mutex_
};

}  // namespace dpwa
