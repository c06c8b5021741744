#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "dpwa/base/file_descriptor.h"

namespace dpwa {

// Writes a file that appears under its name in one step: until commit() all is in a temporary file
// beside it. After a failure or a crash the file has its old content or the new one, never a part.
// A temporary file that is not committed is removed. A link to a file stays, and the file is
// replaced; a device or a pipe is refused. Throws std::system_error that names the file.
// Owned by one thread.
class AtomicFile {
 public:
  // The file has mode 0600, and a temporary file FILE.XXXXXX of its own: several processes may
  // write the file at once, and the last one wins.
  explicit AtomicFile(std::filesystem::path file);
  // With that temporary file, in the same folder. A file that a killed process left there is
  // removed, so only one may write the file at a time. `mode` gives the permissions, less the
  // umask.
  AtomicFile(std::filesystem::path file, const std::filesystem::path& temporary, ::mode_t mode);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void set_mode(::mode_t mode);  // whatever the umask is
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Syncs what was written and gives it the name. The name survives a crash of the machine once
  // the folder is synced too. Called once, at the end.
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  const std::filesystem::path file_;
  std::string temporary_;  // empty: committed
  FileDescriptor descriptor_;
};

// Writes all bytes. False with errno set when it cannot.
bool write_all(int descriptor, std::span<const std::byte> bytes);

// Reads until `into` is full or the file ends. The number of bytes; none with errno set when it
// cannot.
std::optional<std::size_t> read_all(int descriptor, std::span<std::byte> into);

// Makes the names in a folder durable.
std::error_code sync_folder(const std::filesystem::path& folder);
// The folder that has the file.
std::filesystem::path folder_of(const std::filesystem::path& file);

}  // namespace dpwa
