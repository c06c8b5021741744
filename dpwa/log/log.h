#pragma once

#include <string>
#include <string_view>

namespace dpwa {

// Logging without spdlog in sight: LibTorch's include folder shadows the system's fmt, so files
// that see torch cannot include spdlog. Messages arrive formatted.
enum class LogLevel { trace, debug, info, warn, error, off };

// Process-wide: level by name (trace, debug, info, warn, error, off), file path or empty for
// stderr, and the node name that every line carries. Call once at start-up; later calls replace it.
void configure_log(std::string_view level, const std::string& file, const std::string& node);

// One named logger per subsystem ("rx", "tx", "node", "adapter"). Thread-safe.
void log(LogLevel level, std::string_view subsystem, std::string_view message);
bool log_enabled(LogLevel level);

}  // namespace dpwa
