#include "dpwa/base/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace dpwa {

void Crc32c::update(std::span<const std::byte> data) {
  // ISA-L takes the length as an int, and leaves the inversions of RFC 3720 to the caller.
  constexpr std::size_t piece = std::size_t{1} << 30;
  while (!data.empty()) {
    const auto part = data.first(std::min(data.size(), piece));
    // ISA-L only reads the buffer, although its parameter is not const.
    auto* bytes = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(part.data()));
    state_ = crc32_iscsi(bytes, static_cast<int>(part.size()), state_);
    data = data.subspan(part.size());
  }
}

std::uint32_t crc32c(std::span<const std::byte> data) {
  Crc32c checksum;
  checksum.update(data);
  return checksum.value();
}

}  // namespace dpwa
