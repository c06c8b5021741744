#pragma once

#include <filesystem>
#include <string_view>

namespace dpwa::cli {

// Writes the file whole or not at all: into a temporary file beside it, synced, then renamed over
// it. Throws std::runtime_error with the reason; the temporary file is then gone.
void write_file_atomically(const std::filesystem::path& file, std::string_view text);

}  // namespace dpwa::cli
