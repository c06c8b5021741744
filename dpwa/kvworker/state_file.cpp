#include "dpwa/kvworker/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "dpwa/base/atomic_file.h"
#include "dpwa/base/file_descriptor.h"
#include "dpwa/kvworker/error.h"

namespace dpwa::kvstore {

void write_states(const std::filesystem::path& file, const SavedStates& states) {
  AtomicFile target(file, file.string() + ".tmp", 0666);
  target.write(encode(states));
  target.commit();
}

void load_states(const std::filesystem::path& file,
                 const std::function<void(const SavedStates&)>& load) {
  const FileDescriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0)
    throw std::system_error(errno, std::generic_category(), file.string());
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  const auto filled = read_all(descriptor.get(), bytes);
  if (!filled) throw std::system_error(errno, std::generic_category(), file.string());
  bytes.resize(*filled);
  try {
    const auto decoded = decode_states(bytes);
    if (const auto* const fault = std::get_if<std::string>(&decoded)) throw KVStoreError(*fault);
    load(std::get<SavedStates>(decoded));
  } catch (const KVStoreError& fault) {
    throw KVStoreError(file.string() + ": " + fault.what());
  }
}

}  // namespace dpwa::kvstore
