#include "adapters/kvstore/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "adapters/kvstore/torch_values.h"
#include "dpwa/base/atomic_file.h"
#include "dpwa/base/file_descriptor.h"

namespace dpwa::kvstore {
void write_states(const std::filesystem::path& path, const SavedStates& states) {
  AtomicFile file(path, path.string() + ".tmp", 0666);
  file.write(encode(states));
  file.commit();
}

SavedStates read_states(const std::filesystem::path& file) {
  const FileDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0)
    throw std::system_error(errno, std::generic_category(), file.string());
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  const auto filled = read_all(descriptor.get(), bytes);
  if (!filled) throw std::system_error(errno, std::generic_category(), file.string());
  bytes.resize(*filled);
  auto decoded = decode_states(bytes);
  if (const auto* const fault = std::get_if<std::string>(&decoded)) throw KVStoreError(*fault);
  return std::get<SavedStates>(std::move(decoded));
}

}  // namespace dpwa::kvstore
