#include "dpwa/net/io_thread.h"

#include <exception>
#include <new>
#include <string>

#include "dpwa/base/thread_failure.h"
#include "dpwa/log/log.h"

namespace dpwa::net {

void end_for_want_of_memory() {
  end_process("out of memory in the network thread\n");
}

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
        log(limiter, defect.what(), LogLevel::error, "net",
            std::string("a network handler failed and was abandoned: ") + defect.what());
      }
      // The handler that failed may have been the only work; a loop without work has stopped.
      if (io.stopped()) io.restart();
    } catch (const std::bad_alloc&) {
      end_for_want_of_memory();
    }
  }
}

}  // namespace dpwa::net
