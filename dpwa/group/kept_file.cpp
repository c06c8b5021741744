#include "dpwa/group/kept_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "dpwa/base/atomic_file.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/wire/view_messages.h"

namespace dpwa::group {
namespace {

namespace fs = std::filesystem;

constexpr ::off_t longest = 4 << 20;
constexpr auto old_after = std::chrono::hours(24 * 7);

// A folder that this user alone can change; none: there is none.
std::optional<fs::path> own_folder() {
  std::error_code error;
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const fs::path parent =
      runtime != nullptr && *runtime == '/' ? fs::path(runtime) : fs::temp_directory_path(error);
  if (error) return std::nullopt;
  const fs::path folder = parent / ("dpwa-" + std::to_string(::geteuid()));
  ::mkdir(folder.c_str(), 0700);
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) return std::nullopt;
  if (found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) return std::nullopt;
  return folder;
}

std::vector<std::byte> contents_of(int descriptor) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0 || found.st_size > longest) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(found.st_size));
  const auto have = read_all(descriptor, bytes);
  if (!have || *have != bytes.size()) return {};
  return bytes;
}

FileDescriptor open_and_lock(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  struct stat ours {
  }, named{};  // the former process may have removed it meanwhile
  const bool same = ::fstat(file.get(), &ours) == 0 && ::lstat(path.c_str(), &named) == 0 &&
                    ours.st_ino == named.st_ino;
  return same ? std::move(file) : FileDescriptor();
}

// Of processes that were killed, and whose names never came again.
void remove_old_files(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code gone;  // meanwhile
    const auto written = each->last_write_time(gone);
    if (gone || fs::file_time_type::clock::now() - written < old_after) continue;
    if (open_and_lock(each->path()).valid()) ::unlink(each->path().c_str());
  }
}

}  // namespace

KeptFile::KeptFile(const std::string& name) {
  const auto folder = own_folder();
  if (!folder || same_host::boot_id().empty()) return;
  file_ = *folder / name;
  locked_ = open_and_lock(file_);
  if (!locked_.valid()) return;
  remove_old_files(*folder);
  const auto bytes = contents_of(locked_.get());
  const auto boot = std::as_bytes(std::span(same_host::boot_id()));
  if (bytes.size() < boot.size() || !std::ranges::equal(std::span(bytes).first(boot.size()), boot))
    return;
  if (auto kept = wire::kept_from(std::span(bytes).subspan(boot.size())))
    former_ = *std::move(kept);
}

void KeptFile::write(const members::Kept& kept) {
  if (!locked_.valid()) return;
  const auto boot = std::as_bytes(std::span(same_host::boot_id()));
  std::vector<std::byte> bytes(boot.begin(), boot.end());
  const auto content = wire::to_bytes(kept);
  bytes.insert(bytes.end(), content.begin(), content.end());
  // A part of it has a wrong checksum, and is as good as none.
  const bool begun = ::lseek(locked_.get(), 0, SEEK_SET) == 0 && write_all(locked_.get(), bytes);
  if (!begun || ::ftruncate(locked_.get(), static_cast<::off_t>(bytes.size())) != 0) remove();
}

void KeptFile::remove() {
  if (!locked_.valid()) return;
  ::unlink(file_.c_str());
  locked_ = {};
}

}  // namespace dpwa::group
