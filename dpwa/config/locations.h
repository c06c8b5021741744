#pragma once

#include <map>
#include <string>

namespace dpwa::config {

// The line on which a cluster file gives each key, so that a check long after reading still names
// it. Keys are paths such as "gossip.timeout_ms" and "nodes[0].port". Used by one thread while
// loading.
class Locations {
 public:
  explicit Locations(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  // The null that is written out at this place of the file; empty: a value is missing there.
  std::string null_at(int position) const {
    const auto found = nulls_.find(position);
    return found == nulls_.end() ? "" : found->second;
  }
  void place_null(int position, const std::string& written) { nulls_[position] = written; }
  // Of a value from the environment that origin stays.
  void place(const std::string& key, int line) {
    if (Origin& origin = origins_[key]; origin.variable.empty()) origin.line = line;
  }
  // The value of `key` came from the environment instead of the file.
  void place_in_environment(const std::string& key, const std::string& variable) {
    origins_[key] = {0, variable};
  }

  bool has(const std::string& key) const { return origins_.contains(key); }

  // Throws ConfigError "file:line: key: problem", or "environment: VARIABLE: problem". The line is
  // that of the key or of the nearest key around it that is known.
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;
  [[noreturn]] void fail_at(int line, const std::string& key, const std::string& problem) const;

 private:
  struct Origin {
    int line = 0;  // from 1; 0 = none
    std::string variable;
  };
  std::string file_;
  std::map<std::string, Origin> origins_;
  std::map<int, std::string> nulls_;
};

}  // namespace dpwa::config
