#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dpwa::train {

// A tensor of unsigned bytes in IDX form, the format of the MNIST files. Big-endian:
//   0  u8 u8   0, 0
//   2  u8      element type; 0x08 = unsigned byte, the only one accepted
//   3  u8      number of dimensions, 1 to 4
//   4  u32...  size of each dimension
//   then the elements, the last dimension fastest, to the end of the file
struct IdxTensor {
  std::vector<std::size_t> dimensions;
  std::vector<std::uint8_t> elements;
};

// `name` is the file in messages. Throws UsageError when `bytes` is not exactly one such tensor.
IdxTensor parse_idx(std::vector<std::uint8_t> bytes, const std::string& name);

}  // namespace dpwa::train
