#include "test/support/log_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "dpwa/log/log.h"

namespace dpwa::test {

LogFile::LogFile() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dpwa-log-XXXXXX").string();
  const int descriptor = ::mkstemp(pattern.data());
  if (descriptor < 0) throw std::runtime_error("no temporary file");
  ::close(descriptor);
  file_ = pattern;
  NewLog("info", file_.string(), "").use();
}

LogFile::~LogFile() {
  NewLog("info", "", "").use();
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

std::string LogFile::text() const {
  std::ostringstream read;
  read << std::ifstream(file_).rdbuf();
  return read.str();
}

std::size_t LogFile::count(const std::string& text) const {
  const std::string log = this->text();
  std::size_t count = 0;
  for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + text.size()))
    ++count;
  return count;
}

}  // namespace dpwa::test
