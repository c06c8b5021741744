#include "examples/train/metrics_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "dpwa/config/config.h"
#include "dpwa/log/log.h"

namespace dpwa::train {
namespace {

constexpr std::chrono::milliseconds flush_interval(400);
constexpr std::size_t flush_bytes = 256 * 1024;
constexpr std::chrono::seconds retry_interval(5);    // while the file takes none
constexpr std::size_t held_bytes = 4 * 1024 * 1024;  // meanwhile
constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

// The end of the last complete line: a process that was killed may have left half a line.
off_t complete_bytes(int fd) {
  off_t end = ::lseek(fd, 0, SEEK_END);
  char last = 0;
  while (end > 0 && ::pread(fd, &last, 1, end - 1) == 1 && last != '\n') --end;
  return end;
}

// A device or a pipe has no end to cut.
bool cut_at(int fd, off_t end) {
  return ::ftruncate(fd, end) == 0 || errno == EINVAL;
}

FileDescriptor open_lines(const std::filesystem::path& file) {
  return FileDescriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& file, bool append)
    : path_(file), file_(open_lines(file)), fresh_(!append) {
  if (!file_.valid())
    throw ConfigError("--run-dir: " + file.string() + ": " + std::strerror(errno));
}

void MetricsWriter::step(double seconds, std::uint64_t step, double loss, double lr, double step_ms,
                         const StepReport& report, TimePoint now) {
  number("{\"t\": ", std::round(seconds * 1e6) / 1e6);
  whole(", \"step\": ", step);
  number(", \"loss\": ", static_cast<float>(loss));
  number(", \"clock\": ", report.clock);
  text(", \"outcome\": ", to_string(report.outcome));
  text(", \"peer\": ", report.peer);
  const bool blended = report.outcome == Outcome::mixed;
  const auto of_blend = [blended](double value) { return blended ? value : no_value; };
  number(", \"factor\": ", of_blend(report.factor));
  number(", \"staleness\": ", of_blend(report.staleness));
  number(", \"distance\": ", static_cast<float>(of_blend(report.distance)));
  number(", \"waited_ms\": ", static_cast<double>(report.waited.count()) / 1e6);
  number(", \"step_ms\": ", std::round(step_ms * 1e4) / 1e4);
  const bool has_parts = report.computed.count() > 0;
  const auto part_ms = [has_parts](std::chrono::nanoseconds part) {
    return has_parts ? std::round(static_cast<double>(part.count()) / 1e2) / 1e4 : no_value;
  };
  number(", \"compute_ms\": ", part_ms(report.computed));
  number(", \"publish_ms\": ", part_ms(report.published));
  number(", \"blend_ms\": ", part_ms(report.blended));
  whole(", \"bytes\": ", report.bytes);
  if (report.sent > 0) whole(", \"sent\": ", report.sent);
  if (blended) text(", \"transport\": ", report.same_host ? "same_host" : "tcp");
  if (report.clipped) whole(", \"clipped\": ", 1);
  if (report.refused > 0) whole(", \"refused\": ", report.refused);
  if (report.blocks > 1 && blended) whole(", \"block\": ", report.block);
  whole(", \"pulls_ok\": ", report.pulls_ok);
  whole(", \"pulls_failed\": ", report.pulls_failed);
  number(", \"lr\": ", lr);
  end_line();
  const bool due = error_.empty()
                       ? now - flushed_ >= flush_interval || buffer_.size() >= flush_bytes
                       : now - flushed_ >= retry_interval;
  if (!due) return;
  flushed_ = now;
  flush();
}

void MetricsWriter::evaluation(double seconds, std::uint64_t step, double accuracy, double loss) {
  number("{\"t\": ", std::round(seconds * 1e6) / 1e6);
  whole(", \"step\": ", step);
  number(", \"test_accuracy\": ", accuracy);
  number(", \"test_loss\": ", static_cast<float>(loss));
  end_line();
  flush();
}

void MetricsWriter::flush() {
  if (buffer_.empty()) return;
  const int error = write_lines();
  if (error != 0) {
    if (error_.empty())
      log(LogLevel::error, "train",
          path_.string() + ": " + std::strerror(error) + "; its lines wait in memory, up to 4 MiB");
    error_ = std::strerror(error);
    drop_excess();
  } else if (!error_.empty()) {
    error_.clear();
    log(LogLevel::info, "train",
        path_.string() + ": is written again" +
            (lost_ == 0 ? "" : "; lost so far: " + std::to_string(lost_) + " lines"));
  }
}

bool MetricsWriter::close() {
  if (torn_) write_lines();  // there was no line
  flush();
  lost_ += static_cast<std::uint64_t>(std::count(buffer_.begin(), buffer_.end(), '\n'));
  buffer_.clear();
  if (lost_ > 0)
    log(LogLevel::error, "train",
        path_.string() + ": " + std::to_string(lost_) + " lines could not be written" +
            (error_.empty() ? "" : ": " + error_));
  return lost_ == 0;
}

// Those of an earlier process of this node: NODE.metrics.jsonl becomes NODE.metrics.1.jsonl, or the
// next number that is free.
int MetricsWriter::keep_earlier_lines() {
  struct stat file {};
  if (::fstat(file_.get(), &file) != 0 || !S_ISREG(file.st_mode)) return 0;
  if (complete_bytes(file_.get()) == 0) return 0;
  std::filesystem::path kept;
  for (int number = 1; number == 1 || std::filesystem::exists(kept); ++number)
    (kept = path_).replace_extension("." + std::to_string(number) + path_.extension().string());
  if (::rename(path_.c_str(), kept.c_str()) != 0) return errno;
  FileDescriptor fresh = open_lines(path_);
  if (!fresh.valid()) return errno;
  file_ = std::move(fresh);
  return 0;
}

// Writes whole lines and removes them from the buffer. Returns errno, or 0.
int MetricsWriter::write_lines() {
  if (fresh_) {
    if (const int error = keep_earlier_lines(); error != 0) return error;
  }
  const int fd = file_.get();
  if (torn_ && !cut_at(fd, fresh_ ? 0 : complete_bytes(fd))) return errno;
  torn_ = fresh_ = false;
  std::size_t done = 0;
  int error = 0;
  while (error == 0 && done < buffer_.size()) {
    const ssize_t written = ::write(fd, buffer_.data() + done, buffer_.size() - done);
    if (written >= 0)
      done += static_cast<std::size_t>(written);
    else if (errno != EINTR)
      error = errno;
  }
  const std::size_t lines = std::string_view(buffer_).substr(0, done).rfind('\n') + 1;
  buffer_.erase(0, lines);
  torn_ = done != lines && !cut_at(fd, complete_bytes(fd));
  return error;
}

// Drops the latest lines, so that the file has one gap in the end, not many.
void MetricsWriter::drop_excess() {
  if (buffer_.size() <= held_bytes) return;
  const std::size_t kept = buffer_.rfind('\n', held_bytes - 1) + 1;
  const auto excess = buffer_.begin() + static_cast<std::ptrdiff_t>(kept);
  lost_ += static_cast<std::uint64_t>(std::count(excess, buffer_.end(), '\n'));
  buffer_.erase(excess, buffer_.end());
}

void MetricsWriter::number(std::string_view key, double value) {
  buffer_ += key;
  if (!std::isfinite(value)) {
    buffer_ += "null";
    return;
  }
  std::array<char, 32> digits{};
  const auto single = static_cast<float>(value);  // prints short: 0.1, not 0.10000000149011612
  char* begin = digits.data();
  char* end = begin + digits.size();
  const auto done =
      single == value ? std::to_chars(begin, end, single) : std::to_chars(begin, end, value);
  buffer_.append(begin, done.ptr);
}

void MetricsWriter::whole(std::string_view key, std::uint64_t value) {
  buffer_ += key;
  buffer_ += std::to_string(value);
}

// With the wall clock: seconds since 1970.
void MetricsWriter::end_line() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  number(", \"wall\": ", static_cast<double>(milliseconds) / 1e3);
  buffer_ += "}\n";
}

// Null when it is empty.
void MetricsWriter::text(std::string_view key, std::string_view value) {
  buffer_ += key;
  if (value.empty()) {
    buffer_ += "null";
    return;
  }
  buffer_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') buffer_ += '\\';
    buffer_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  buffer_ += '"';
}

}  // namespace dpwa::train
