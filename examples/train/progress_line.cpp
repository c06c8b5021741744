#include "examples/train/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace dpwa::train {
namespace {

constexpr std::chrono::milliseconds terminal_interval(500);
constexpr std::chrono::milliseconds file_interval(10000);

std::string words_for(const StepReport& report) {
  const std::string outcome(to_string(report.outcome));
  if (report.outcome == Outcome::averaged)
    return outcome + " over " + std::to_string(report.participants) + " nodes";
  return "pulls " + std::to_string(report.pulls_ok) + " ok " + std::to_string(report.pulls_failed) +
         " failed  " + outcome + " " + report.peer;
}

}  // namespace

ProgressLine::ProgressLine(std::string node, std::uint64_t steps, bool quiet, std::FILE* out)
    : node_(std::move(node)),
      steps_(steps),
      quiet_(quiet),
      out_(out),
      terminal_(::isatty(::fileno(out)) != 0) {}

ProgressLine::~ProgressLine() {
  if (line_open_) std::fputc('\n', out_);
}

bool ProgressLine::due(TimePoint since, TimePoint now) const {
  return !quiet_ && now - since >= (terminal_ ? terminal_interval : file_interval);
}

void ProgressLine::show(const std::string& text, TimePoint now) {
  shown_ = now;
  std::fprintf(out_, "%s%s  %s%s", terminal_ ? "\r\x1b[K" : "", node_.c_str(), text.c_str(),
               terminal_ ? "" : "\n");
  std::fflush(out_);
  line_open_ = terminal_;
}

void ProgressLine::step(std::uint64_t step, double loss, const StepReport& report, TimePoint now) {
  if (!due(shown_, now)) return;
  std::array<char, 32> accuracy{};
  if (accuracy_ >= 0)
    std::snprintf(accuracy.data(), accuracy.size(), "  accuracy %.2f %%", 100 * accuracy_);
  std::array<char, 512> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "step %llu/%llu  loss %.4f%s  clock %.1f  ",
                static_cast<unsigned long long>(step), static_cast<unsigned long long>(steps_),
                loss, accuracy.data(), report.clock);
  show(numbers.data() + words_for(report), now);
}

void ProgressLine::work(std::string_view what, std::size_t done, std::size_t total, TimePoint now) {
  if (done == 0) work_begun_ = now;
  if (!due(std::max(shown_, work_begun_), now)) return;
  show(
      std::string(what) + ": " + std::to_string(done) + " of " + std::to_string(total) + " samples",
      now);
}

}  // namespace dpwa::train
