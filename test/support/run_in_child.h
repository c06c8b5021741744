#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <functional>
#include <string>

namespace dpwa::test {

struct Ended {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  std::string errors;  // what it wrote to stderr
};

// Runs `body` in a process of its own, which ends with exit code 0 after it.
inline Ended run_in_child(const std::function<void()>& body) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    ::close(pipe[0]);
    ::close(pipe[1]);
    std::signal(SIGABRT, SIG_DFL);
    body();
    ::_exit(0);
  }
  ::close(pipe[1]);
  Ended ended;
  std::array<char, 4096> part{};
  for (ssize_t count = 0; (count = ::read(pipe[0], part.data(), part.size())) > 0;)
    ended.errors.append(part.data(), static_cast<std::size_t>(count));
  ::close(pipe[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  return ended;
}

}  // namespace dpwa::test
