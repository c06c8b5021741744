#include "dpwa/net/io_thread.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "dpwa/log/log.h"

namespace dpwa::net {

// Nothing before the log allocates; the log comes last because it may.
void end_for_want_of_memory(std::string_view line) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  try {
    log(LogLevel::error, "net", line.substr(0, line.size() - 1));
  } catch (const std::exception&) {  // no memory for that either
  }
  std::_Exit(out_of_memory_exit_code);
}

namespace {

void report(const std::exception& defect, LogLimiter& limiter) {
  const std::string what = defect.what();
  const auto held_back = limiter.pass(what, std::chrono::steady_clock::now());
  if (held_back) {
    log(LogLevel::error, "net",
        "a network handler failed and was abandoned: " + what + since_words(*held_back));
  }
}

}  // namespace

void run_io(boost::asio::io_context& io) {
  LogLimiter limiter;
  while (true) {
    try {
      try {
        io.run();
        return;
      } catch (const std::bad_alloc&) {
        throw;
      } catch (const std::exception& defect) {
        report(defect, limiter);
      }
      // The handler that failed may have been the only work; a loop without work has stopped.
      if (io.stopped()) io.restart();
    } catch (const std::bad_alloc&) {
      end_for_want_of_memory("out of memory in the network thread\n");
    }
  }
}

}  // namespace dpwa::net
