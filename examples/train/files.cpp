#include "examples/train/files.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

#include "examples/train/errors.h"

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

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};

std::string last_error(gzFile_s* file) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  return code == Z_ERRNO ? std::strerror(errno) : text;
}

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
    ::unlink(temporary.c_str());  // half a file is of no use and takes room on a full disk
    throw;
  }
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  Descriptor(directory, O_RDONLY | O_DIRECTORY).sync();
}

std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::size_t limit) {
  const std::string name = path.string();
  std::unique_ptr<gzFile_s, CloseGz> file(gzopen(name.c_str(), "rb"));
  if (!file) throw UsageError(name + ": " + std::strerror(errno));
  gzbuffer(file.get(), 1 << 18);
  std::vector<std::uint8_t> content;
  constexpr std::size_t piece = 1 << 20;
  while (true) {
    const std::size_t have = content.size();
    content.resize(std::min(have + piece, limit + 1));
    const int got =
        gzread(file.get(), content.data() + have, static_cast<unsigned>(content.size() - have));
    if (got < 0) throw UsageError(name + ": " + last_error(file.get()));
    content.resize(have + static_cast<std::size_t>(got));
    if (got == 0) break;
    if (content.size() > limit)
      throw UsageError(name + ": holds more than " + std::to_string(limit) + " bytes");
  }
  // A gzip stream that ends early gives its bytes first and the error at the end.
  if (gzclose_r(file.release()) != Z_OK) throw UsageError(name + ": the gzip data is cut off");
  return content;
}

std::filesystem::path find_data_file(const std::filesystem::path& dir, const std::string& folder,
                                     const std::string& stem) {
  for (const auto& place : {dir, dir / folder})
    for (const char* ending : {"", ".gz"}) {
      const std::filesystem::path candidate = place / (stem + ending);
      std::error_code error;
      if (std::filesystem::is_regular_file(candidate, error)) return candidate;
    }
  throw UsageError("--data-dir: neither " + stem + " nor " + stem + ".gz is in '" + dir.string() +
                   "' or in its folder " + folder);
}

}  // namespace dpwa::train
