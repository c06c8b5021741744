#include "dpwa/base/thread_failure.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

namespace dpwa {
namespace {

std::atomic<void (*)(std::string_view)> log_line = nullptr;

// On the stack: there may be no memory.
class LastLine {
 public:
  LastLine(std::string_view before, std::string_view thread, std::string_view after,
           std::string_view words = "") {
    const auto length = [](std::string_view text) { return static_cast<int>(text.size()); };
    const int wanted = std::snprintf(text_.data(), text_.size() - 1, "%.*s%.*s%.*s%.*s",
                                     length(before), before.data(), length(thread), thread.data(),
                                     length(after), after.data(), length(words), words.data());
    size_ = static_cast<std::size_t>(std::clamp(wanted, 0, static_cast<int>(text_.size()) - 2));
    std::replace(text_.begin(), text_.begin() + size_, '\n', ' ');
    text_[size_++] = '\n';
  }
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 1024> text_{};
  std::size_t size_ = 0;
};

}  // namespace

// Nothing before the log allocates; the log comes last because it may.
void end_process(std::string_view line) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  try {
    if (const auto write = log_line.load()) write(line.substr(0, line.size() - 1));
  } catch (const std::exception&) {  // no memory for that either
  }
  std::_Exit(1);
}

void log_last_line_with(void (*write)(std::string_view line)) {
  log_line = write;
}

void end_for_exception(std::string_view thread) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    end_process(LastLine("out of memory in ", thread, "").text());
  } catch (const std::exception& error) {
    end_process(LastLine("", thread, " failed: ", error.what()).text());
  } catch (...) {
    end_process(LastLine("", thread, " failed").text());
  }
}

}  // namespace dpwa
