#include "dpwa/net/io_thread.h"

#include <chrono>
#include <exception>
#include <new>
#include <string>

#include "dpwa/base/thread_failure.h"
#include "dpwa/log/log.h"

namespace dpwa::net {

void end_for_want_of_memory() {
  end_process("out of memory in the network thread\n");
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
      end_for_want_of_memory();
    }
  }
}

}  // namespace dpwa::net
