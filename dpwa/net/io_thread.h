#pragma once

#include <boost/asio/io_context.hpp>
#include <thread>

#include "dpwa/base/invariant.h"

namespace dpwa::net {

// The end of a process whose network thread was refused memory: dpwa/base/thread_failure.h.
[[noreturn]] void end_for_want_of_memory();

// Runs `io` until it has nothing left to do; nothing else stops it. A handler that fails because of
// a defect is abandoned and logged as an error, at most once a minute each, and the loop continues:
// no message of a peer may end a training. Memory that is refused here ends the process with the
// line `out of memory in the network thread`.
void run_io(boost::asio::io_context& io);

// An object is used by one I/O thread: the thread of its first check(). A member of what lives on
// such a thread.
class IoThread {
 public:
  void check() {
    const std::thread::id own = std::this_thread::get_id();
    if (thread_ == std::thread::id()) thread_ = own;
    DPWA_INVARIANT(thread_ == own, "an object of an I/O thread is used by this thread alone");
  }

 private:
  std::thread::id thread_;
};

}  // namespace dpwa::net
