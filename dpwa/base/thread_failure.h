#pragma once

#include <string_view>
#include <utility>

namespace dpwa {

// Ends the process at once, without destructors, with exit code 1 and a last line on stderr and in
// the log. `line` ends with a newline.
[[noreturn]] void end_process(std::string_view line);
// How such a line gets into the log, which sets it.
void log_last_line_with(void (*write)(std::string_view line));

// The end of the process for the exception that is being handled, in a thread without a caller:
// `out of memory in THREAD`, or `THREAD failed: ` with the words of the exception.
[[noreturn]] void end_for_exception(std::string_view thread) noexcept;

// Runs the function of a thread without a caller, such as "the thread of the store". An exception
// that leaves it ends the process as above, not by std::terminate.
template <typename Body>
void run_or_end(std::string_view thread, Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (...) {
    end_for_exception(thread);
  }
}

}  // namespace dpwa
