#include "dpwa/security/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "dpwa/base/atomic_file.h"
#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/plain_text.h"

namespace dpwa {
namespace {

namespace fs = std::filesystem;

std::string words_for(int error) {
  return std::generic_category().message(error);
}

constexpr const char* readable = "; accepted: a regular file that this user may read";

std::string line(const fs::path& file, const std::string& problem) {
  return one_line(file.string()) + ": " + problem;
}

std::vector<gid_t> groups_of_process() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  groups.resize(static_cast<std::size_t>(
      std::max(0, ::getgroups(static_cast<int>(groups.size()), groups.data()))));
  groups.push_back(::getegid());
  return groups;
}

bool is_on_read_only_volume(int descriptor) {
  struct statvfs volume {};
  return ::fstatvfs(descriptor, &volume) == 0 && (volume.f_flag & ST_RDONLY) != 0;
}

std::optional<std::string> fault_of(const struct stat& status, const fs::path& file,
                                    int descriptor) {
  if (!S_ISREG(status.st_mode)) return std::string("is not a regular file") + readable;
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return "belongs to another user (" + std::to_string(status.st_uid) +
           "); accepted: a file of this user or of root";
  }
  const bool is_shared = (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  if (is_shared && !is_secret_of_group(status.st_mode, status.st_gid, groups_of_process(),
                                       is_on_read_only_volume(descriptor))) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777U);
    return std::string("may be used by others (mode ") + mode + "); remedy: chmod 600 " +
           one_line(file.string());
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_folder(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return std::nullopt;  // unknown folders are refused
  if ((status.st_mode & S_IWOTH) == 0) return std::nullopt;
  const bool trusted = status.st_uid == 0 || status.st_uid == ::geteuid();
  const bool sticky = (status.st_mode & S_ISVTX) != 0;
  if (sticky && trusted) return std::nullopt;
  const std::string name = one_line(folder.string());
  return "lies in a folder in which any user may replace it (" + name + ", " +
         (sticky ? "of user " + std::to_string(status.st_uid) : "world-writable") +
         "); remedy: chmod o-w " + name + ", or another folder";
}

// The fault of any folder on the way to the file that is open as `descriptor`, links resolved.
std::optional<std::string> fault_of_folders(int descriptor) {
  std::error_code unknown;  // no /proc, or the file is gone: nothing to go by
  const fs::path file = fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), unknown);
  for (fs::path at = file; !unknown && at.has_relative_path();) {
    at = at.parent_path();
    if (auto fault = fault_of_folder(at)) return fault;
  }
  return std::nullopt;
}

void fail(const fs::path& file, const std::string& what, int error) {
  throw std::runtime_error(line(file, what + ": " + words_for(error)));
}

}  // namespace

bool is_secret_of_group(mode_t mode, gid_t group, std::span<const gid_t> own, bool read_only) {
  const bool is_written = (mode & (S_IWUSR | S_IWGRP | S_IWOTH)) != 0;
  const bool is_for_others = (mode & (S_IRWXO | S_IXGRP | S_IXUSR)) != 0;
  return read_only && !is_written && !is_for_others && std::ranges::find(own, group) != own.end();
}

FileResult<SecretText> read_private_file(const fs::path& file, std::size_t max_bytes) {
  // Not blocking, so that the program does not wait for a pipe of this name.
  const FileDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) return line(file, "cannot be read: " + words_for(errno) + readable);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0)
    return line(file, "cannot be read: " + words_for(errno) + readable);
  if (const auto fault = fault_of(status, file, descriptor.get())) return line(file, *fault);
  if (const auto fault = fault_of_folders(descriptor.get())) return line(file, *fault);
  SecretText secret(max_bytes + 1);
  const auto have = read_all(descriptor.get(), std::as_writable_bytes(std::span(secret.text())));
  if (!have) return line(file, "cannot be read: " + words_for(errno) + readable);
  if (*have > max_bytes)
    return line(file, "is too large; accepted: at most " + std::to_string(max_bytes) + " bytes");
  secret.text().resize(*have);
  return secret;
}

void create_private_file(const fs::path& file, const SecretText& text) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  FileDescriptor descriptor(::open(file.c_str(), flags, S_IRUSR | S_IWUSR));
  if (descriptor.get() < 0 && errno == EEXIST)
    throw FileExists(line(file, "exists; it is never overwritten"));
  if (descriptor.get() < 0) fail(file, "cannot be created", errno);
  const auto bytes = std::as_bytes(std::span(text.text()));
  if (!write_all(descriptor.get(), bytes) || ::fsync(descriptor.get()) != 0) {
    const int error = errno;
    ::unlink(file.c_str());
    fail(file, "cannot be written", error);
  }
  (void)sync_folder(folder_of(file));
}

void replace_private_file(const fs::path& file, const SecretText& text) {
  try {
    AtomicFile replacement(file);
    replacement.write(text.text());
    replacement.commit();
  } catch (const std::system_error& error) {
    fail(file, "cannot be replaced", error.code().value());
  }
  (void)sync_folder(folder_of(file));
}

}  // namespace dpwa
