#include "examples/train/checkpoint_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>

#include "dpwa/base/file_descriptor.h"
#include "examples/train/checkpoint_file.h"
#include "examples/train/errors.h"

namespace dpwa::train {
namespace {

class CheckpointReader {
 public:
  // O_NONBLOCK: a pipe in the file's place has nobody who writes to it.
  explicit CheckpointReader(const std::filesystem::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
    if (!fd_.valid()) fail();
  }

  std::uint64_t size() const {
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) fail();
    if (!S_ISREG(status.st_mode)) throw DamagedCheckpoint("it is not a regular file");
    return static_cast<std::uint64_t>(status.st_size);
  }

  // Fewer bytes than `most` at the end of the file alone.
  std::string read(std::uint64_t most) const {
    std::string bytes(most, '\0');
    std::size_t have = 0;
    while (have < bytes.size()) {
      const ssize_t got =
          ::pread(fd_.get(), bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail();
      if (got == 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }

 private:
  [[noreturn]] void fail() const {
    throw UsageError("--resume: checkpoint " + path_.string() + " cannot be read: " +
                     std::strerror(errno) + "; accepted: one that can, or another directory");
  }

  const std::filesystem::path& path_;
  const FileDescriptor fd_;
};

}  // namespace

std::string read_checkpoint(const std::filesystem::path& path) {
  const CheckpointReader file(path);
  const std::uint64_t bytes = file.size();
  check_checkpoint_header(file.read(checkpoint_header_bytes), bytes);
  try {
    return checkpoint_body(file.read(bytes));
  } catch (const std::bad_alloc&) {
    throw std::runtime_error("checkpoint " + path.string() + ": no memory for its " +
                             std::to_string(bytes) + " bytes");
  }
}

}  // namespace dpwa::train
