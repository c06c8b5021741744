#include "examples/train/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace dpwa::train {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(), path.string());
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags, ::mode_t mode = 0)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (fd_ < 0) fail(path_);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::string_view data) const {
    while (!data.empty()) {
      const ssize_t written = ::write(fd_, data.data(), data.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_);
      data.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void sync() const {
    if (::fsync(fd_) != 0) fail(path_);
  }

 private:
  const std::filesystem::path& path_;
  int fd_;
};

}  // namespace

void write_file_atomically(const std::filesystem::path& path,
                           std::initializer_list<std::string_view> parts, ::mode_t mode) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  try {
    {
      ::unlink(temporary.c_str());  // what a killed process left keeps its own permissions
      const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode);
      for (const std::string_view part : parts) file.write(part);
      file.sync();
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path);
  } catch (...) {
    ::unlink(temporary.c_str());  // half a file helps nobody, and a full disk needs the room
    throw;
  }
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  Descriptor(directory, O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace dpwa::train
