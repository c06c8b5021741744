#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dpwa::train {

// Writes the parts one after the other to PATH.tmp, syncs it, renames it to PATH and syncs the
// directory: after a crash PATH holds the old content or the new, never a part. Throws
// std::system_error naming the file. Concurrent writers of one path are not supported. `mode`
// gives the permissions of the file, less the umask.
void write_file_atomically(const std::filesystem::path& path,
                           const std::vector<std::string_view>& parts, ::mode_t mode = 0666);
// For weights, which may be worth as much as keys.
inline constexpr ::mode_t private_mode = 0600;

// The content of a file, uncompressed when it is gzip. Throws ConfigError naming the file when it
// cannot be read, is damaged or cut off, or holds more than `limit` bytes.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::size_t limit);

}  // namespace dpwa::train
