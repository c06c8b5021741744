#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dpwa/base/event_kind.h"
#include "dpwa/log/log.h"

namespace dpwa {

// A line of the log that tells about the cluster or the run. Lines of level warn and error are
// events too, so the log and the events have the same words.
struct Event {
  std::uint64_t number = 0;  // 1 for the first one of the process
  double wall = 0;           // seconds since 1970
  EventKind kind = EventKind::warning;
  LogLevel level = LogLevel::info;
  std::string subsystem;
  std::string text;  // at most most_event_bytes
};

inline constexpr std::size_t recent_event_count = 32;
inline constexpr std::size_t most_event_bytes = 256;

// One JSON object: {"number", "wall", "event", "level", "from", "text"}.
std::string to_json(const Event& event);

// The last ones of this process, the oldest first. Any thread.
std::vector<Event> recent_events();

// From now on appends each event to this file as a line, those before included. Throws
// std::runtime_error when it cannot be opened; a line that cannot be written is lost. Any thread.
void write_events_to(const std::filesystem::path& file);

// Logs the message, and keeps it as an event, also where the log leaves out its level.
void log_event(EventKind kind, LogLevel level, std::string_view subsystem,
               std::string_view message);
// The same unless the limiter holds it back now.
void log_event(LogLimiter& limiter, const std::string& key, EventKind kind, LogLevel level,
               std::string_view subsystem, const std::string& message);

// What log() does with a line of level warn or error. Without memory the event is lost.
void keep_event(EventKind kind, LogLevel level, std::string_view subsystem,
                std::string_view message) noexcept;

}  // namespace dpwa
