#include "dpwa/log/log_limiter.h"

#include <utility>

namespace dpwa {

std::optional<unsigned> LogLimiter::pass(const std::string& key, TimePoint now) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= max_keys) entries_.clear();
    entries_.emplace(key, Entry{now, 0});
    return 0;
  }
  Entry& entry = found->second;
  if (now - entry.passed < period_) {
    ++entry.held_back;
    return std::nullopt;
  }
  entry.passed = now;
  return std::exchange(entry.held_back, 0);
}

}  // namespace dpwa
