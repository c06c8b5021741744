#include "dpwa/log/events.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"

namespace dpwa {
namespace {

struct Kept {
  Mutex mutex;
  std::deque<Event> recent DPWA_GUARDED_BY(mutex);
  std::uint64_t last DPWA_GUARDED_BY(mutex) = 0;
  FileDescriptor file DPWA_GUARDED_BY(mutex);
};

// Never destroyed, as the log: threads that exit() leaves running have events after main().
Kept& kept() {
  static auto& all = *new Kept();
  return all;
}

// To the millisecond.
double wall_now() {
  return static_cast<double>(wall_clock_us() / 1000) / 1e3;
}

std::string_view name_of(LogLevel level) {
  constexpr std::array<std::string_view, 6> names{"trace", "debug", "info", "warn", "error", "off"};
  return names.at(static_cast<std::size_t>(level));
}

// One call of write(): lines of several processes that share a file stay whole.
void append(const FileDescriptor& file, const Event& event) {
  const std::string line = to_json(event) + '\n';
  while (::write(file.get(), line.data(), line.size()) < 0 && errno == EINTR) continue;
}

}  // namespace

std::string to_json(const Event& event) {
  const nlohmann::ordered_json json{
      {"number", event.number},        {"wall", event.wall},      {"event", to_string(event.kind)},
      {"level", name_of(event.level)}, {"from", event.subsystem}, {"text", event.text}};
  return json.dump();
}

std::vector<Event> recent_events() {
  Kept& all = kept();
  const MutexLock lock(all.mutex);
  return {all.recent.begin(), all.recent.end()};
}

void write_events_to(const std::filesystem::path& file) {
  FileDescriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!opened.valid()) throw std::runtime_error(file.string() + ": " + std::strerror(errno));
  Kept& all = kept();
  const MutexLock lock(all.mutex);
  for (const Event& event : all.recent) append(opened, event);
  all.file = std::move(opened);
}

void keep_event(EventKind kind, LogLevel level, std::string_view subsystem,
                std::string_view message) noexcept try {
  Event event{0,
              wall_now(),
              kind,
              level,
              std::string(subsystem),
              to_plain_text(one_line(message), most_event_bytes)};
  Kept& all = kept();
  const MutexLock lock(all.mutex);
  event.number = ++all.last;
  if (all.file.valid()) append(all.file, event);
  all.recent.push_back(std::move(event));
  if (all.recent.size() > recent_event_count) all.recent.pop_front();
} catch (const std::bad_alloc&) {  // the log has the line
}

void log_event(LogLimiter& limiter, const std::string& key, EventKind kind, LogLevel level,
               std::string_view subsystem, const std::string& message) {
  const auto held_back = limiter.pass(key, std::chrono::steady_clock::now());
  if (held_back) log_event(kind, level, subsystem, message + since_words(*held_back));
}

}  // namespace dpwa
