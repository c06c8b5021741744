#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dpwa::test {

// Longer than any process takes on a loaded machine under a sanitizer.
inline constexpr std::chrono::seconds run_patience(120);

// A child process with stdout and stderr appended to a file. Killed and reaped at the end if it is
// still there, stopped or not. Movable; one thread.
class ChildProcess {
 public:
  // `environment`: NAME=VALUE, beside what this process has. Throws std::system_error.
  ChildProcess(std::vector<std::string> command, const std::filesystem::path& output,
               std::vector<std::string> environment = {});
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  pid_t id() const { return pid_; }
  void signal(int number) const;
  bool running();
  // The exit code, or minus the signal that ended it; none when it still runs after `limit`.
  std::optional<int> wait(std::chrono::nanoseconds limit = run_patience);

 private:
  pid_t pid_ = -1;            // -1: moved from
  std::optional<int> ended_;  // its exit code, once reaped
};

// A child process whose output replaces what the file had.
ChildProcess start_afresh(std::vector<std::string> command, const std::filesystem::path& output);

}  // namespace dpwa::test
