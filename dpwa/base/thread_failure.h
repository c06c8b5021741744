#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace dpwa {

// The last line of a process. On the stack, because there may be no memory; what does not fit is
// cut off.
class LastLine {
 public:
  // A newline becomes a blank.
  LastLine& add(std::string_view words);
  // " on node 'w1'", if name_last_lines() was called.
  LastLine& add_node();
  // Ends with a newline.
  std::string_view text() const { return {text_.data(), size_ + 1}; }
  std::string_view without_newline() const { return {text_.data(), size_}; }

 private:
  std::array<char, 1024> text_{'\n'};
  std::size_t size_ = 0;
};

// Writes the line, which ends with a newline, to stderr and to the log.
void write_last_line(std::string_view line) noexcept;
// Ends the process at once, without destructors, with a last line.
[[noreturn]] void end_process(std::string_view line, int exit_code = 1);
// How such a line gets into the log, which sets it.
void log_last_line_with(void (*write)(std::string_view line));
// The node of this process; the log sets it. A name of more than 64 bytes is cut off.
void name_last_lines(std::string_view node);

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
