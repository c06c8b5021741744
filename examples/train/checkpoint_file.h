#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace dpwa::train {

// The frame of a checkpoint file. Layout, little-endian:
//    0  8  "DPWACKPT"
//    8  4  version, 1
//   12  4  CRC32C of the body
//   16  8  bytes of the body
//   24     body: u64 bytes of the run state, the run state as JSON, a LibTorch archive to the end
inline constexpr std::size_t checkpoint_header_bytes = 24;
std::string checkpoint_header(std::string_view body);

// The file is certainly not a whole checkpoint; the text states the damage.
class DamagedCheckpoint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Of a file of `file_bytes` that begins with `begin`, its first 24 bytes or all: throws
// DamagedCheckpoint unless they are the header of a file of that size. Needs no memory for the
// rest.
void check_checkpoint_header(std::string_view begin, std::uint64_t file_bytes);

// The body of a whole file. Throws DamagedCheckpoint.
std::string checkpoint_body(std::string file);

struct CheckpointParts {
  std::string_view state;    // JSON
  std::string_view archive;  // of LibTorch
};
// Views into `body`. Throws DamagedCheckpoint when it is too short.
CheckpointParts split_checkpoint(std::string_view body);
std::string join_checkpoint(const CheckpointParts& parts);

// The body of the checkpoint file at `path`. Throws DamagedCheckpoint when it is certainly not a
// whole checkpoint: not a regular file, or wrong bytes; the header is checked before memory for the
// rest is taken. Throws ConfigError that names the file when it cannot be opened or read, because
// it may be intact, and std::runtime_error that names it when there is not enough memory.
std::string read_checkpoint(const std::filesystem::path& path);

}  // namespace dpwa::train
