#include "dpwa/net/run_io.h"

#include <chrono>
#include <new>
#include <thread>

namespace dpwa::net {

void run_io(boost::asio::io_context& io, const std::function<void()>& on_refused) {
  // Others may give memory back meanwhile.
  constexpr auto pause = std::chrono::milliseconds(10);
  bool refused = false;
  while (true) {
    try {
      if (refused) std::this_thread::sleep_for(pause);
      if (refused && on_refused) on_refused();
      refused = false;
      io.run();
      return;
    } catch (const std::bad_alloc&) {
      refused = true;
    }
  }
}

}  // namespace dpwa::net
