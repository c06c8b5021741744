#pragma once

#include <map>
#include <optional>
#include <string>

#include "dpwa/base/time.h"

namespace dpwa {

// Lets a recurring message through once per key and period, and limits the messages of all keys per
// period. Hostile or broken peers then cannot fill the log, however many names or addresses they
// use. Pure: time is an argument. One owner, one thread.
class LogLimiter {
 public:
  static constexpr unsigned most_in_a_period = 200;

  explicit LogLimiter(Duration period = std::chrono::minutes(1)) : period_(period) {}

  // When this message may pass: how many messages of `key` were suppressed since the last one that
  // passed.
  std::optional<unsigned> pass(const std::string& key, TimePoint now);

 private:
  struct Entry {
    std::optional<TimePoint> passed;
    unsigned held_back = 0;
  };
  static constexpr std::size_t max_keys = 4096;  // above: everything is forgotten
  bool spent(TimePoint now);

  Duration period_;
  std::optional<TimePoint> began_;  // of the period in which `passed_` have passed
  unsigned passed_ = 0;
  std::map<std::string, Entry> entries_;
};

// To be appended to a message that passed: "" or " (3 times since)".
std::string since_words(unsigned held_back);

}  // namespace dpwa
