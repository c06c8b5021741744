#include "dpwa/base/thread_failure.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

#include "dpwa/base/threads.h"

namespace dpwa {
namespace {

std::atomic<void (*)(std::string_view)> log_line = nullptr;

// Held for a copy of these bytes only.
Mutex& node_mutex() {
  static Mutex mutex;
  return mutex;
}
std::array<char, 64> node_name DPWA_GUARDED_BY(node_mutex());
std::size_t node_name_size DPWA_GUARDED_BY(node_mutex()) = 0;

}  // namespace

LastLine& LastLine::add(std::string_view words) {
  const std::size_t count = std::min(words.size(), text_.size() - 1 - size_);
  std::replace_copy(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count),
                    text_.begin() + static_cast<std::ptrdiff_t>(size_), '\n', ' ');
  size_ += count;
  text_[size_] = '\n';
  return *this;
}

LastLine& LastLine::add_node() {
  const MutexLock lock(node_mutex());
  if (node_name_size == 0) return *this;
  return add(" on node '").add({node_name.data(), node_name_size}).add("'");
}

void name_last_lines(std::string_view node) {
  const MutexLock lock(node_mutex());
  node_name_size = std::min(node.size(), node_name.size());
  std::copy_n(node.begin(), node_name_size, node_name.begin());
}

// Nothing before the log allocates; the log comes last because it may.
void write_last_line(std::string_view line) noexcept {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  try {
    if (const auto write = log_line.load()) write(line.substr(0, line.size() - 1));
  } catch (const std::exception&) {  // no memory for that either
  }
}

void end_process(std::string_view line, int exit_code) {
  write_last_line(line);
  std::_Exit(exit_code);
}

void log_last_line_with(void (*write)(std::string_view line)) {
  log_line = write;
}

void end_for_exception(std::string_view thread) noexcept {
  LastLine line;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    line.add("out of memory in ").add(thread);
  } catch (const std::exception& error) {
    line.add(thread).add(" failed: ").add(error.what());
  } catch (...) {
    line.add(thread).add(" failed");
  }
  end_process(line.text());
}

}  // namespace dpwa
