#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dpwa::train {

// The content of a file, uncompressed when it is gzip. Throws UsageError naming the file when it
// cannot be read, is damaged or cut off, or holds more than `limit` bytes.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::size_t limit);

// `stem` or `stem`.gz in `dir` or in `dir`/`folder`; throws UsageError when there is neither.
std::filesystem::path find_data_file(const std::filesystem::path& dir, const std::string& folder,
                                     const std::string& stem);

}  // namespace dpwa::train
