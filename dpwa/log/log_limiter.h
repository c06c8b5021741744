#pragma once

#include <map>
#include <optional>
#include <string>

#include "dpwa/core/time.h"

namespace dpwa {

// Lets a recurring message through once per key and period, so that a hostile or broken peer cannot
// fill the log. Pure: time is an argument. One owner, one thread.
class LogLimiter {
 public:
  explicit LogLimiter(Duration period = std::chrono::minutes(1)) : period_(period) {}

  // How many messages of `key` were held back since the last one that passed, when this one may
  // pass.
  std::optional<unsigned> pass(const std::string& key, TimePoint now);

 private:
  struct Entry {
    TimePoint passed;
    unsigned held_back = 0;
  };
  static constexpr std::size_t max_keys = 4096;  // above: everything is forgotten
  Duration period_;
  std::map<std::string, Entry> entries_;
};

}  // namespace dpwa
