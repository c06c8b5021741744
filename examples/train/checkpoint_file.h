#pragma once

#include <string>
#include <string_view>

namespace dpwa::train {

// The frame of a checkpoint file. Layout, little-endian:
//    0  8  "DPWACKPT"
//    8  4  version, 1
//   12  4  CRC32C of the body
//   16  8  bytes of the body
//   24     body: u64 bytes of the run state, the run state as JSON, a LibTorch archive to the end
std::string checkpoint_header(std::string_view body);

// The body of a whole file. Throws std::runtime_error that says what is wrong with it.
std::string checkpoint_body(std::string file);

struct CheckpointParts {
  std::string_view state;    // JSON
  std::string_view archive;  // of LibTorch
};
// Views into `body`. Throws std::runtime_error when it is too short.
CheckpointParts split_checkpoint(std::string_view body);
std::string join_checkpoint(const CheckpointParts& parts);

}  // namespace dpwa::train
