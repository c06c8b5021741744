#include "examples/train/checkpoint_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/endian/conversion.hpp>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>

#include "dpwa/base/checksum.h"
#include "dpwa/base/file_descriptor.h"
#include "dpwa/config/config.h"

namespace dpwa::train {
namespace {

namespace endian = boost::endian;

constexpr std::string_view magic = "DPWACKPT";
constexpr std::uint32_t version = 1;
constexpr std::size_t prefix_bytes = 8;

std::uint32_t checksum(std::string_view body) {
  return crc32c(std::as_bytes(std::span(body.data(), body.size())));
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

class CheckpointReader {
 public:
  // O_NONBLOCK: do not wait for a writer when the path is a pipe.
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

  // Returns fewer bytes than `most` only at the end of the file.
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
    throw ConfigError("--resume: checkpoint " + path_.string() + " cannot be read: " +
                      std::strerror(errno) + "; accepted: one that can, or another directory");
  }

  const std::filesystem::path& path_;
  const FileDescriptor fd_;
};

}  // namespace

std::string checkpoint_header(std::string_view body) {
  std::string header(checkpoint_header_bytes, '\0');
  auto* at = reinterpret_cast<unsigned char*>(header.data());
  std::memcpy(at, magic.data(), magic.size());
  endian::store_little_u32(at + 8, version);
  endian::store_little_u32(at + 12, checksum(body));
  endian::store_little_u64(at + 16, body.size());
  return header;
}

void check_checkpoint_header(std::string_view begin, std::uint64_t file_bytes) {
  if (begin.size() < checkpoint_header_bytes) throw DamagedCheckpoint("it is cut off");
  if (!begin.starts_with(magic)) throw DamagedCheckpoint("it is not a checkpoint");
  const auto* at = bytes_of(begin);
  if (endian::load_little_u32(at + 8) != version)
    throw DamagedCheckpoint("it has format version " +
                            std::to_string(endian::load_little_u32(at + 8)) + "; accepted: 1");
  if (endian::load_little_u64(at + 16) != file_bytes - checkpoint_header_bytes)
    throw DamagedCheckpoint("its size is not the one in its header");
}

std::string checkpoint_body(std::string file) {
  check_checkpoint_header(file, file.size());
  const std::uint32_t expected = endian::load_little_u32(bytes_of(file) + 12);
  file.erase(0, checkpoint_header_bytes);
  if (checksum(file) != expected) throw DamagedCheckpoint("its checksum does not match");
  return file;
}

CheckpointParts split_checkpoint(std::string_view body) {
  if (body.size() < prefix_bytes) throw DamagedCheckpoint("it is too short");
  const std::uint64_t bytes = endian::load_little_u64(bytes_of(body));
  if (bytes > body.size() - prefix_bytes) throw DamagedCheckpoint("it is too short");
  return {body.substr(prefix_bytes, bytes), body.substr(prefix_bytes + bytes)};
}

std::string join_checkpoint(const CheckpointParts& parts) {
  std::string body(prefix_bytes, '\0');
  endian::store_little_u64(reinterpret_cast<unsigned char*>(body.data()), parts.state.size());
  body += parts.state;
  body += parts.archive;
  return body;
}

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
