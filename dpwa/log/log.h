#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "dpwa/base/time.h"

namespace dpwa {

// Logging without spdlog in sight: LibTorch's include folder shadows the system's fmt, so files
// that see torch cannot include spdlog. Messages arrive formatted.
enum class LogLevel { trace, debug, info, warn, error, off };

// A log that is open but not in use yet: level by name (trace, debug, info, warn, error, off), file
// path or empty for stderr, and the node name that every line carries. use() makes it the log of
// the process, in place of the one before. dpwa/config/open_log.h opens that of a cluster file.
class NewLog {
 public:
  // Throws std::runtime_error when the file cannot be opened.
  NewLog(std::string_view level, const std::string& file, const std::string& node);
  void use() noexcept;

 private:
  std::shared_ptr<void> logger_;
};

// One named logger per subsystem ("rx", "tx", "node", "adapter"). A message that quotes a peer or a
// file cannot look like another line: it is written as by one_line(). Thread-safe.
void log(LogLevel level, std::string_view subsystem, std::string_view message);
bool log_enabled(LogLevel level);
// Whether use() was called on any log in this process. Thread-safe.
bool log_is_open();

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

// Logs the message unless the limiter holds it back now, with the number of those held back before.
void log(LogLimiter& limiter, const std::string& key, LogLevel level, std::string_view subsystem,
         const std::string& message);

}  // namespace dpwa
