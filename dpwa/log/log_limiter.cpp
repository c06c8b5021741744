#include "dpwa/log/log_limiter.h"

#include <utility>

namespace dpwa {

bool LogLimiter::spent(TimePoint now) {
  if (!began_ || now - *began_ >= period_) {
    began_ = now;
    passed_ = 0;
  }
  return passed_ >= most_in_a_period;
}

std::optional<unsigned> LogLimiter::pass(const std::string& key, TimePoint now) {
  if (entries_.size() >= max_keys && !entries_.contains(key)) entries_.clear();
  Entry& entry = entries_[key];
  if ((entry.passed && now - *entry.passed < period_) || spent(now)) {
    ++entry.held_back;
    return std::nullopt;
  }
  ++passed_;
  entry.passed = now;
  return std::exchange(entry.held_back, 0);
}

std::string since_words(unsigned held_back) {
  return held_back > 0 ? " (" + std::to_string(held_back) + " times since)" : "";
}

}  // namespace dpwa
