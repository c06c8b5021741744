#include "dpwa/log/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utility>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/thread_failure.h"
#include "dpwa/base/threads.h"
#include "dpwa/log/events.h"

namespace dpwa {
namespace {

// This is here because every program that opens anything of a node also logs, even one that embeds
// the library.
[[maybe_unused]] const bool standard_descriptors_are_open = reserve_standard_descriptors();

[[maybe_unused]] const bool last_lines_are_logged = [] {
  log_last_line_with([](std::string_view line) { log(LogLevel::error, "node", line); });
  return true;
}();

std::shared_ptr<spdlog::logger> make_logger(const std::string& file, const std::string& node) {
  spdlog::sink_ptr sink;
  if (file.empty()) {
    const auto colour = std::getenv("NO_COLOR") != nullptr ? spdlog::color_mode::never
                                                           : spdlog::color_mode::automatic;
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(colour);
  } else {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file, false);
  }
  auto logger = std::make_shared<spdlog::logger>(node, std::move(sink));
  logger->set_pattern(node.empty() ? "%Y-%m-%d %H:%M:%S.%e %^%-5l%$ %v"
                                   : "%Y-%m-%d %H:%M:%S.%e %^%-5l%$ [%n] %v");
  logger->flush_on(spdlog::level::info);
  return logger;
}

Mutex& logger_mutex() {
  static Mutex mutex;
  return mutex;
}

// Never destroyed: nodes in static objects of a program, and threads that exit() leaves running,
// log after main().
std::shared_ptr<spdlog::logger>& logger_slot() DPWA_REQUIRES(logger_mutex()) {
  static auto& logger = *new std::shared_ptr<spdlog::logger>(make_logger("", ""));
  return logger;
}

std::atomic<bool> opened{false};

std::shared_ptr<spdlog::logger> logger() {
  const MutexLock lock(logger_mutex());
  return logger_slot();
}

// spdlog has one level more, `critical`, between the last two.
spdlog::level::level_enum to_spdlog(LogLevel level) {
  return level == LogLevel::off ? spdlog::level::off
                                : static_cast<spdlog::level::level_enum>(level);
}
static_assert(static_cast<int>(LogLevel::trace) == SPDLOG_LEVEL_TRACE &&
              static_cast<int>(LogLevel::error) == SPDLOG_LEVEL_ERROR);

void write_line(LogLevel level, std::string_view subsystem, std::string_view message) {
  if (!log_enabled(level)) return;
  logger()->log(to_spdlog(level), "{}: {}", subsystem, one_line(message));
}

}  // namespace

NewLog::NewLog(std::string_view level, const std::string& file, const std::string& node) try {
  auto configured = make_logger(file, node);
  configured->set_level(level == "error" ? spdlog::level::err
                                         : spdlog::level::from_str(std::string(level)));
  logger_ = std::move(configured);
} catch (const spdlog::spdlog_ex& error) {
  throw std::runtime_error(error.what());
}

void NewLog::use() noexcept {
  auto configured = std::static_pointer_cast<spdlog::logger>(logger_);
  name_last_lines(configured->name());
  const MutexLock lock(logger_mutex());
  logger_slot().swap(configured);
  opened = true;
}

void log(LogLevel level, std::string_view subsystem, std::string_view message) {
  write_line(level, subsystem, message);
  if (level == LogLevel::warn) keep_event(EventKind::warning, level, subsystem, message);
  if (level == LogLevel::error) keep_event(EventKind::error, level, subsystem, message);
}

void log_event(EventKind kind, LogLevel level, std::string_view subsystem,
               std::string_view message) {
  write_line(level, subsystem, message);
  keep_event(kind, level, subsystem, message);
}

bool log_is_open() {
  return opened;
}

bool log_enabled(LogLevel level) {
  return logger()->should_log(to_spdlog(level));
}

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

void log(LogLimiter& limiter, const std::string& key, LogLevel level, std::string_view subsystem,
         const std::string& message) {
  const auto held_back = limiter.pass(key, std::chrono::steady_clock::now());
  if (held_back) log(level, subsystem, message + since_words(*held_back));
}

}  // namespace dpwa
