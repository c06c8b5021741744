#pragma once

#include <sys/types.h>

#include <filesystem>
#include <initializer_list>
#include <string_view>

namespace dpwa::train {

// Writes the parts one after the other to PATH.tmp, syncs it, renames it to PATH and syncs the
// directory: after a crash PATH holds the old content or the new, never a part. Throws
// std::system_error naming the file. Concurrent writers of one path are not supported. `mode` is
// what the file's permissions are, less the umask.
void write_file_atomically(const std::filesystem::path& path,
                           std::initializer_list<std::string_view> parts, ::mode_t mode = 0666);

}  // namespace dpwa::train
