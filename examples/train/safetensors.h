#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dpwa::train {

// A tensor of a safetensors file.
struct StoredTensor {
  std::string name;
  std::string_view dtype;  // as the format names it, such as "F32"
  std::uint64_t element_bytes = 0;
  std::vector<std::int64_t> shape;
  std::string_view data;  // contiguous, little-endian
};

// Writes a safetensors file atomically, readable by its owner alone. Layout:
//    0  8  bytes of the header, little-endian
//    8     header: JSON, {"__metadata__": {"key": "value", ...},
//            "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...},
//          with spaces at its end up to a multiple of 8 bytes
//          data of the tensors without gaps, those of large elements first, so each one is aligned;
//          data_offsets count from here
// Throws std::system_error that names the file.
void write_safetensors(const std::filesystem::path& file, std::vector<StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace dpwa::train
