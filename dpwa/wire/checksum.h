#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dpwa::wire {

// CRC32C (Castagnoli, RFC 3720), by ISA-L. crc32c("123456789") = 0xE3069283.
std::uint32_t crc32c(std::span<const std::byte> data);

}  // namespace dpwa::wire
