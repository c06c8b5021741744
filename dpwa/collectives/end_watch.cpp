#include "dpwa/collectives/end_watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"

namespace dpwa::collectives {
namespace {

constexpr std::string_view farewell = "farewell";
constexpr auto between_looks = std::chrono::seconds(10);

}  // namespace

EndWatch::EndWatch(std::vector<std::pair<int, ipc::MessageSocket>> sockets,
                   std::function<void(int, bool)> ended)
    : sockets_(std::move(sockets)), ended_(std::move(ended)), ends_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = start_background_thread(
      [this] { run_or_end("the thread that watches the members", [this] { work(); }); });
}

EndWatch::~EndWatch() {
  ::eventfd_write(ends_.get(), 1);
  thread_.join();
}

// The other end reads it, or is gone: a few bytes do not fill a socket.
void EndWatch::say_farewell() noexcept {
  for (const auto& [rank, socket] : sockets_) {
    ipc::Write write(std::as_bytes(std::span(farewell)), -1);
    write.step(socket.descriptor());
  }
}

void EndWatch::work() {
  name_thread("dpwa-ends");
  std::vector<int> ranks;  // of those that are watched, in the order of `watched`
  std::vector<int> watched;
  for (const auto& [rank, socket] : sockets_) {
    ranks.push_back(rank);
    watched.push_back(socket.descriptor());
  }
  while (!ipc::is_readable(ends_.get())) {
    watched.push_back(ends_.get());
    ipc::wait_for_any(watched, between_looks);
    watched.pop_back();
    for (std::size_t i = 0; i < watched.size();) {
      if (!ipc::is_readable(watched[i])) {
        ++i;
        continue;
      }
      // It was sent as a whole: what is less, or other, is the end of a process.
      std::array<char, farewell.size()> said{};
      ipc::Read read(std::as_writable_bytes(std::span(said)), said.size(), nullptr);
      const bool in_order = !read.step(watched[i]) && std::ranges::equal(said, farewell);
      const int rank = ranks[i];
      watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(i));
      ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(i));
      ended_(rank, in_order);
    }
  }
}

}  // namespace dpwa::collectives
