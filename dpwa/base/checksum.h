#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dpwa {

// CRC32C (Castagnoli, RFC 3720), by ISA-L. crc32c("123456789") = 0xE3069283.
std::uint32_t crc32c(std::span<const std::byte> data);

// The same checksum for data that arrives in parts.
class Crc32c {
 public:
  void update(std::span<const std::byte> data);
  std::uint32_t value() const { return ~state_; }  // of all parts so far
  // For a pass that takes in the next part by other means: without the inversions of RFC 3720.
  std::uint32_t& state() { return state_; }

 private:
  std::uint32_t state_ = ~std::uint32_t{0};
};

}  // namespace dpwa
