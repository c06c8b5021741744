#include "test/support/log_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <stdexcept>

#include "dpwa/log/log.h"
#include "test/support/temporary_directory.h"

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
  return read_text(file_);
}

std::size_t LogFile::count(const std::string& text) const {
  return count_of(this->text(), text);
}

}  // namespace dpwa::test
