#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace dpwa {

// Logging without spdlog in sight: LibTorch's include folder shadows the system's fmt, so files
// that see torch cannot include spdlog. Messages arrive formatted.
enum class LogLevel { trace, debug, info, warn, error, off };

// A log that is open but not in use yet: level by name (trace, debug, info, warn, error, off), file
// path or empty for stderr, and the node name that every line carries. use() makes it the log of
// the process, in place of the one before.
class NewLog {
 public:
  // Throws std::runtime_error when the file cannot be opened.
  NewLog(std::string_view level, const std::string& file, const std::string& node);
  void use() noexcept;

 private:
  std::shared_ptr<void> logger_;
};

// Opens a log and uses it, for programs without a cluster file. Other programs:
// dpwa/config/open_log.h.
void configure_log(std::string_view level, const std::string& file, const std::string& node);

// One named logger per subsystem ("rx", "tx", "node", "adapter"). Thread-safe.
void log(LogLevel level, std::string_view subsystem, std::string_view message);
bool log_enabled(LogLevel level);

}  // namespace dpwa
