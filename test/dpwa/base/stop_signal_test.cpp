#include "dpwa/base/stop_signal.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <initializer_list>
#include <utility>

#include "test/support/run_in_child.h"

namespace dpwa {
namespace {

// Of a program that defers stopping, gets these signals, and then ends; 77: it got none.
test::Ended after(std::initializer_list<int> signals, int preempted_code = 143) {
  return test::run_in_child([&] {
    stop_signal::install("program");
    stop_signal::set_preempted_code(preempted_code);
    stop_signal::defer(true);
    for (const int number : signals) std::raise(number);
    ::_exit(stop_signal::received() == 0 ? 77 : stop_signal::exit_code());
  });
}

}  // namespace

TEST_CASE("the first signal to stop is noted, and gives the exit code") {
  CHECK(after({}).exit_code == 77);
  CHECK(after({SIGHUP, SIGPIPE}).exit_code == 77);
  for (const int number : {SIGTERM, SIGINT}) {
    const test::Ended ended = after({number});
    CHECK(ended.exit_code == 128 + number);
    CHECK(ended.errors.empty());
  }
}

TEST_CASE("two SIGTERM at once are one stop") {
  const test::Ended ended = after({SIGTERM, SIGTERM, SIGTERM});
  CHECK(ended.exit_code == 143);
  CHECK(ended.errors.empty());
}

TEST_CASE("a SIGINT after another signal ends the process at once") {
  CHECK(after({SIGINT, SIGINT}).errors == "program: ended by SIGINT\n");
  CHECK(after({SIGTERM, SIGINT}).errors == "program: ended by SIGINT\n");
  CHECK(after({SIGUSR2, SIGINT}).exit_code == 130);
  CHECK(after({SIGINT, SIGTERM}).errors == "program: ended by SIGTERM\n");
}

TEST_CASE("the notice of a preemption and the SIGTERM that follows it are one stop") {
  for (const int notice : {SIGUSR1, SIGUSR2}) {
    CHECK(after({notice}).exit_code == 143);
    CHECK(after({notice, notice, SIGTERM, SIGTERM}, 0).exit_code == 0);
    CHECK(after({SIGTERM, notice}, 0).exit_code == 143);
  }
}

TEST_CASE(
    "a process that knows its grace ends before it is killed, wherever it is, and not with 0") {
  const std::string why = ": what was under way, such as a step, outlasts the grace\n";
  for (const auto& [number, words] : {std::pair(SIGTERM, "program: ended by SIGTERM" + why),
                                      std::pair(SIGUSR2, "program: ended by SIGUSR2" + why)}) {
    const test::Ended ended = test::run_in_child([number] {
      stop_signal::install("program");
      stop_signal::set_preempted_code(0);
      stop_signal::set_grace(2);
      stop_signal::defer(true);
      std::raise(number);
      while (true) ::pause();
    });
    CHECK(ended.exit_code == 143);
    CHECK(ended.errors == words);
  }
}

TEST_CASE("a bound on the time after a signal holds for one that has come and one that comes") {
  for (const bool before : {true, false}) {
    const test::Ended ended = test::run_in_child([before] {
      stop_signal::install("program");
      stop_signal::defer(true);
      if (before) std::raise(SIGTERM);
      stop_signal::limit(1);
      if (!before) std::raise(SIGTERM);
      while (true) ::pause();
    });
    CHECK(ended.exit_code == 143);
    CHECK(ended.errors == "program: ended by SIGTERM\n");
  }
}

TEST_CASE("a signal that is not deferred ends the process at once") {
  for (const auto install :
       {+[] { stop_signal::install_early(); }, +[] { stop_signal::install(); }}) {
    const auto ended_by = [&](int number) {
      return test::run_in_child([&] {
               install();
               std::raise(number);
               ::_exit(77);
             })
          .exit_code;
    };
    CHECK(ended_by(SIGTERM) == 143);
    CHECK(ended_by(SIGUSR1) == 143);
    CHECK(ended_by(SIGHUP) == 77);
  }
}

TEST_CASE("a signal that the starter of a program has blocked waits until the program hears it") {
  const auto after_early = [](int number, const std::function<void()>& install) {
    return test::run_in_child([&] {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      std::raise(number);
      install();
      ::_exit(stop_signal::take_reload() ? 78 : 77);
    });
  };
  const auto late = [] { stop_signal::install("program"); };
  CHECK(after_early(SIGUSR2, stop_signal::install_early).exit_code == 143);
  CHECK(after_early(SIGHUP, stop_signal::install_early).exit_code == 78);
  CHECK(after_early(SIGTERM, late).errors == "program: ended by SIGTERM\n");
  CHECK(after_early(SIGHUP, late).exit_code == 78);
}

}  // namespace dpwa
