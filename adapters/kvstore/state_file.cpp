#include "adapters/kvstore/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "adapters/kvstore/torch_values.h"
#include "dpwa/base/file_descriptor.h"

namespace dpwa::kvstore {
namespace {

// The error number, 0 for none.
int write_synced(const std::string& file, std::span<const std::byte> bytes) {
  const FileDescriptor descriptor(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (descriptor.get() < 0) return errno;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor.get()) == 0 ? 0 : errno;
}

}  // namespace

void write_states(const std::filesystem::path& file, const SavedStates& states) {
  const std::string temporary = file.string() + ".tmp";
  int error = write_synced(temporary, encode(states));
  if (error == 0 && std::rename(temporary.c_str(), file.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  throw std::system_error(error, std::generic_category(), file.string());
}

SavedStates read_states(const std::filesystem::path& file) {
  const FileDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0)
    throw std::system_error(errno, std::generic_category(), file.string());
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::read(descriptor.get(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category(), file.string());
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  auto decoded = decode_states(bytes);
  if (const auto* const fault = std::get_if<std::string>(&decoded)) throw KVStoreError(*fault);
  return std::get<SavedStates>(std::move(decoded));
}

}  // namespace dpwa::kvstore
