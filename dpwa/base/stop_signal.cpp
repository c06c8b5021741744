#include "dpwa/base/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace dpwa::stop_signal {
namespace {

std::atomic<int> noted{0};
std::atomic<bool> deferred{false};
std::atomic<bool> reload_wanted{false};
std::atomic<const char*> name{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

void say(const char* text) {
  const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);  // it ends anyway
}

// Within a signal handler.
[[noreturn]] void end(int number) {
  if (const char* program = name) {
    say(program);
    say(number == SIGINT ? ": ended by SIGINT\n" : ": ended by SIGTERM\n");
  }
  ::_exit(128 + number);
}

void on_signal(int number) {
  int none = 0;
  const bool first = noted.compare_exchange_strong(none, number);
  if (!first || !deferred) end(number);
}

void on_hang_up(int) {
  reload_wanted = true;
}

void on_alarm(int) {
  end(noted);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

void hold_reload() {
  handle(SIGHUP, on_hang_up);
}

void install(const char* program) {
  name = program;
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  handle(SIGHUP, on_hang_up);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
}

void defer(bool on) {
  deferred = on;
}

int received() {
  return noted;
}

bool take_reload() {
  return reload_wanted.exchange(false);
}

void limit(unsigned seconds) {
  handle(SIGALRM, on_alarm);
  ::alarm(seconds);
}

Deferral::Deferral() : before_(deferred.exchange(true)) {}

Deferral::~Deferral() {
  deferred = before_;
}

}  // namespace dpwa::stop_signal
