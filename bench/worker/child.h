#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bench/worker/json_lines.h"

namespace dpwa::bench {

// A child process that speaks JsonLines over its standard input and output; its errors go where
// ours go. The kernel kills it when this process ends, however it ends, and the destructor does.
// One thread, which must outlive it.
class Child {
 public:
  // Throws std::system_error.
  explicit Child(const std::vector<std::string>& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(const Json& document) { lines_.send(document); }
  // The next document. Throws std::runtime_error when the child has ended, or is silent for
  // minutes, or reports {"error": ...}.
  Json receive();

 private:
  struct Pipes {
    int to_child;
    int from_child;
    pid_t pid;
  };
  static Pipes launch(const std::vector<std::string>& command);
  explicit Child(const Pipes& pipes);

  const Pipes pipes_;
  JsonLines lines_;
};

// The folder of the running program: its sibling programs are there.
std::filesystem::path program_folder();

}  // namespace dpwa::bench
