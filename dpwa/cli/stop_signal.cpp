#include "dpwa/cli/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace dpwa::cli::stop_signal {
namespace {

std::atomic<int> noted{0};
std::atomic<bool> reload_wanted{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_signal(int number) {
  int none = 0;
  if (!noted.compare_exchange_strong(none, number)) ::_exit(128 + number);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

void install() {
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  handle(SIGHUP, [](int) { reload_wanted = true; });
}

int received() {
  return noted;
}

bool take_reload() {
  return reload_wanted.exchange(false);
}

}  // namespace dpwa::cli::stop_signal
