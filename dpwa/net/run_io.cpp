#include "dpwa/net/run_io.h"

#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "dpwa/log/log.h"
#include "dpwa/log/log_limiter.h"

namespace dpwa::net {
namespace {

void report(const std::exception& defect, LogLimiter& limiter) noexcept {
  try {
    const std::string what = defect.what();
    const auto held_back = limiter.pass(what, std::chrono::steady_clock::now());
    if (held_back) {
      log(LogLevel::error, "net",
          "a network handler failed and was given up: " + what + since_words(*held_back));
    }
  } catch (const std::exception&) {  // no memory for the line
  }
}

}  // namespace

void run_io(boost::asio::io_context& io, const std::function<void()>& on_lost) {
  // Others may give memory back meanwhile.
  constexpr auto pause = std::chrono::milliseconds(10);
  LogLimiter limiter;
  bool lost = false;
  while (true) {
    try {
      if (lost) std::this_thread::sleep_for(pause);
      if (lost && on_lost) on_lost();
      // The handler that was lost may have been the only work there was, which ends a loop for
      // good.
      if (lost && io.stopped()) io.restart();
      lost = false;
      io.run();
      return;
    } catch (const std::bad_alloc&) {
      lost = true;
    } catch (const std::exception& defect) {
      report(defect, limiter);
      lost = true;
    }
  }
}

}  // namespace dpwa::net
