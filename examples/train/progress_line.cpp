#include "examples/train/progress_line.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

namespace dpwa::train {
namespace {

constexpr std::chrono::milliseconds terminal_interval(500);
constexpr std::chrono::milliseconds file_interval(2000);

}  // namespace

ProgressLine::ProgressLine(std::string node, std::uint64_t steps, bool quiet)
    : node_(std::move(node)), steps_(steps), quiet_(quiet), terminal_(::isatty(STDERR_FILENO)) {}

ProgressLine::~ProgressLine() {
  if (line_open_) std::fputc('\n', stderr);
}

void ProgressLine::step(std::uint64_t step, double loss, const StepReport& report, TimePoint now) {
  if (quiet_ || now - shown_ < (terminal_ ? terminal_interval : file_interval)) return;
  shown_ = now;
  std::array<char, 32> accuracy{};
  if (accuracy_ >= 0)
    std::snprintf(accuracy.data(), accuracy.size(), "  accuracy %.2f %%", 100 * accuracy_);
  std::fprintf(
      stderr, "%s%s  step %llu/%llu  loss %.4f%s  clock %.1f  pulls %llu ok %llu failed  %.*s %s%s",
      terminal_ ? "\r\x1b[K" : "", node_.c_str(), static_cast<unsigned long long>(step),
      static_cast<unsigned long long>(steps_), loss, accuracy.data(), report.clock,
      static_cast<unsigned long long>(report.pulls_ok),
      static_cast<unsigned long long>(report.pulls_failed),
      static_cast<int>(to_string(report.outcome).size()), to_string(report.outcome).data(),
      report.peer.c_str(), terminal_ ? "" : "\n");
  std::fflush(stderr);
  line_open_ = terminal_;
}

}  // namespace dpwa::train
