#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace dpwa::test {

// A child process with stdout and stderr in a file. Killed when it is still there at the end.
class Process {
 public:
  Process(std::vector<std::string> command, const std::filesystem::path& output) {
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { ::kill(pid_, number); }

  // A signal to the process that none of its threads has taken yet.
  bool pending(int number) const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string word; status >> word;) {
      if (word != "ShdPnd:") continue;
      std::uint64_t set = 0;
      status >> std::hex >> set;
      return (set >> (number - 1) & 1) != 0;
    }
    return false;
  }

  // The soft limit on core dumps, as the system shows it.
  std::string core_file_limit() const {
    std::ifstream limits("/proc/" + std::to_string(pid_) + "/limits");
    const std::string name = "Max core file size";
    for (std::string line; std::getline(limits, line);) {
      if (!line.starts_with(name)) continue;
      const auto begin = line.find_first_not_of(' ', name.size());
      return line.substr(begin, line.find(' ', begin) - begin);
    }
    return "unknown";
  }

  // The exit code, or minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace dpwa::test
