#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace dpwa::test {

// The log of this process in a file of its own, until the end of the test.
class LogFile {
 public:
  LogFile();
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  std::string text() const;                          // all lines so far
  std::size_t count(const std::string& text) const;  // how often it has been said
  bool has(const std::string& text) const { return count(text) > 0; }

 private:
  std::filesystem::path file_;
};

}  // namespace dpwa::test
