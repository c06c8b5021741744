#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

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

}  // namespace dpwa::bench
