#pragma once

#include <boost/asio/io_context.hpp>
#include <cassert>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

namespace dpwa::net {

// The exit code of a process whose network thread was refused memory.
inline constexpr int out_of_memory_exit_code = 1;

// The end of a process of which a thread without a caller was refused memory: `line`, which ends
// with a newline, on stderr and in the log, and exit code out_of_memory_exit_code, without
// destructors.
[[noreturn]] void end_for_want_of_memory(std::string_view line);

// Runs `body` on a thread without a caller: memory that is refused in it ends the process with
// `line`.
template <typename Body>
void run_or_end(std::string_view line, Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    end_for_want_of_memory(line);
  }
}

// Runs `io` until it has nothing left to do; nothing else stops it. A handler that fails because of
// a defect is abandoned and logged as an error, at most once a minute each, and the loop continues:
// no message of a peer may end a training. Memory that is refused here ends the process with the
// line `out of memory in the network thread`.
void run_io(boost::asio::io_context& io);

// Asserts that an object is used by one I/O thread: the thread of its first check(). A member of
// what lives on such a thread; nothing in builds without assertions.
class IoThread {
 public:
  void check() {
#ifndef NDEBUG
    if (thread_ == std::thread::id()) thread_ = std::this_thread::get_id();
    assert(thread_ == std::this_thread::get_id() && "used by a thread that is not its I/O thread");
#endif
  }

 private:
  [[maybe_unused]] std::thread::id thread_;
};

}  // namespace dpwa::net
