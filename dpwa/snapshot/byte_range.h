#pragma once

#include <algorithm>
#include <cstdint>

namespace dpwa {

// Bytes [offset, offset + length) of a snapshot.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t end() const { return offset + length; }
  bool operator==(const ByteRange&) const = default;
};

// The bytes that both have; of length 0 when there are none.
inline ByteRange overlap(ByteRange a, ByteRange b) {
  const std::uint64_t from = std::max(a.offset, b.offset);
  const std::uint64_t to = std::min(a.end(), b.end());
  return {from, to > from ? to - from : 0};
}

}  // namespace dpwa
