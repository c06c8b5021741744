#include "dpwa/base/stop_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace dpwa::stop_signal {
namespace {

constexpr std::int64_t one_stop_ms = 5000;  // in which two SIGTERM are one
constexpr int code_after_sigterm = 128 + SIGTERM;

std::atomic<int> noted{0};
std::atomic<std::int64_t> terminated_at{0};  // the first SIGTERM that counted; 0 = none
std::atomic<int> code_of_notice{code_after_sigterm};
std::atomic<unsigned> grace{0};  // seconds; 0 = not known
std::atomic<unsigned> bound{0};  // likewise, of limit()
std::atomic<bool> deferred{false};
std::atomic<bool> reload_wanted{false};
std::atomic<const char*> name{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<unsigned>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

bool is_notice(int number) {
  return number == SIGUSR1 || number == SIGUSR2;
}

int code_of(int number) {
  return is_notice(number) ? code_of_notice.load() : 128 + number;
}

void say(const char* text) {
  const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);  // it ends anyway
}

const char* ending(int number) {
  switch (number) {
    case SIGINT:
      return ": ended by SIGINT";
    case SIGUSR1:
      return ": ended by SIGUSR1";
    case SIGUSR2:
      return ": ended by SIGUSR2";
    default:
      return ": ended by SIGTERM";
  }
}

void say_ending(int number, const char* why = "") {
  const char* program = name;
  if (program == nullptr) return;
  say(program);
  say(ending(number));
  say(why);
  say("\n");
}

// Within a signal handler.
[[noreturn]] void end(int number) {
  say_ending(number);
  ::_exit(code_of(number));
}

// Whether a signal after the noted one belongs to the same stop.
bool is_same_stop(int number) {
  if (is_notice(number)) return true;
  if (number != SIGTERM) return false;
  if (noted != SIGTERM && !is_notice(noted)) return false;  // a SIGINT was first
  std::int64_t none = 0;
  return terminated_at.compare_exchange_strong(none, now_ms()) || now_ms() - none < one_stop_ms;
}

void on_signal(int number) {
  int none = 0;
  if (!noted.compare_exchange_strong(none, number)) {
    if (!is_same_stop(number)) end(number);
    return;
  }
  if (number == SIGTERM) terminated_at = now_ms();
  if (!deferred) end(number);
  if (grace > 0)
    ::alarm(std::max(1U, grace - 1));
  else if (bound > 0)
    ::alarm(bound);
}

void on_early_signal(int number) {
  end(number);
}

void on_hang_up(int) {
  reload_wanted = true;
}

// It has not ended in order: 0 would be untrue.
void on_alarm(int) {
  const int number = noted;
  if (number == 0) return;
  say_ending(number, grace > 0 ? ": what was under way, such as a step, outlasts the grace" : "");
  ::_exit(is_notice(number) ? code_after_sigterm : 128 + number);
}

// No handler interrupts another one.
void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

// SIGHUP, and those that stop; from now on they are heard, also those that have waited for that.
void hear(void (*stop_handler)(int)) {
  sigset_t heard;
  ::sigemptyset(&heard);
  ::sigaddset(&heard, SIGHUP);
  handle(SIGHUP, on_hang_up);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) {
    ::sigaddset(&heard, number);
    handle(number, stop_handler);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &heard, nullptr);
}

}  // namespace

void install_early() {
  hear(on_early_signal);
}

void install(const char* program) {
  name = program;
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
  hear(on_signal);
}

void defer(bool on) {
  deferred = on;
}

int received() {
  return noted;
}

bool preempted() {
  return is_notice(noted);
}

bool take_reload() {
  return reload_wanted.exchange(false);
}

void limit(unsigned seconds) {
  if (grace > 0) return;
  handle(SIGALRM, on_alarm);
  bound = seconds;
  if (noted != 0) ::alarm(seconds);
}

void set_grace(unsigned seconds) {
  handle(SIGALRM, on_alarm);
  grace = seconds;
}

int exit_code() {
  return code_of(noted);
}

void set_preempted_code(int code) {
  code_of_notice = code;
}

Deferral::Deferral() : before_(deferred.exchange(true)) {}

Deferral::~Deferral() {
  deferred = before_;
}

}  // namespace dpwa::stop_signal
