#include "dpwa/cli/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

namespace dpwa::cli {
namespace {

// False with errno set when not everything was written and synced.
bool fill(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& file, std::string_view text) {
  const auto fail = [&](int error) {
    throw std::runtime_error("cannot write '" + file.string() +
                             "': " + std::generic_category().message(error));
  };
  std::string temporary = file.string() + ".XXXXXX";
  const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) fail(errno);
  ::fchmod(descriptor, 0644);
  int error = fill(descriptor, text) ? 0 : errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), file.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    fail(error);
  }
}

}  // namespace dpwa::cli
