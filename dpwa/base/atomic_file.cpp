#include "dpwa/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace dpwa {
namespace {

// What gets the new content. rename() would turn a link, a device or a pipe into a file.
std::filesystem::path replaced_by(std::filesystem::path file) {
  std::error_code missing;
  const auto type = status(file, missing).type();
  using std::filesystem::file_type;
  if (type == file_type::regular && is_symlink(file)) return canonical(file);
  if (missing || type == file_type::regular || type == file_type::directory) return file;
  throw std::system_error(ENOTSUP, std::generic_category(),
                          file.string() + " is not a regular file");
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path file)
    : file_(replaced_by(std::move(file))), temporary_(file_.string() + ".XXXXXX") {
  descriptor_ = FileDescriptor(::mkostemp(temporary_.data(), O_CLOEXEC));
  if (!descriptor_.valid()) fail(errno);
}

AtomicFile::AtomicFile(std::filesystem::path file, const std::filesystem::path& temporary,
                       ::mode_t mode)
    : file_(replaced_by(std::move(file))), temporary_(temporary.string()) {
  // A file in the way would keep its own permissions, and may be a link to elsewhere.
  if (::unlink(temporary_.c_str()) != 0 && errno != ENOENT) fail(errno);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  descriptor_ = FileDescriptor(::open(temporary_.c_str(), flags, mode));
  if (!descriptor_.valid()) fail(errno);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) const {
  throw std::system_error(error, std::generic_category(), file_.string());
}

void AtomicFile::set_mode(::mode_t mode) {
  if (::fchmod(descriptor_.get(), mode) != 0) fail(errno);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!write_all(descriptor_.get(), bytes)) fail(errno);
}

void AtomicFile::commit() {
  if (::fsync(descriptor_.get()) != 0) fail(errno);
  if (::close(descriptor_.release()) != 0) fail(errno);
  if (std::rename(temporary_.c_str(), file_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

std::optional<std::size_t> read_all(int descriptor, std::span<std::byte> into) {
  std::size_t have = 0;
  while (have < into.size()) {
    const ssize_t got = ::read(descriptor, into.data() + have, into.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  return have;
}

std::error_code sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.valid() && ::fsync(descriptor.get()) == 0) return {};
  return {errno, std::generic_category()};
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace dpwa
