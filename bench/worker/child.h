#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dpwa::bench {

using Json = nlohmann::ordered_json;

// JSON documents over a pair of descriptors, one a line. Owns neither. One thread.
class JsonLines {
 public:
  JsonLines(int in, int out) : in_(in), out_(out) {}

  // Throws std::runtime_error when the other side is gone.
  void send(const Json& document);
  // None when the other side has closed. Throws std::runtime_error when nothing comes within
  // `limit` (zero: no limit), or what comes is no JSON.
  std::optional<Json> receive(std::chrono::milliseconds limit = std::chrono::milliseconds::zero());

 private:
  const int in_;
  const int out_;
  std::string buffered_;
};

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
