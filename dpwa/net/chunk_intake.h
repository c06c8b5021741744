#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dpwa/base/checksum.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/landing.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

// Takes in one chunk of a reply as it arrives: parts that fit into the first-level cache are read
// for the checksum and landed at once, while the own parameters that they are compared with come
// from memory. What has landed is of use only when checksum() proves right. An encoded chunk is
// taken in when it is whole.
class ChunkIntake {
 public:
  // `payload`: where the chunk arrives, all of it; outlives this. `checked`: it has a checksum.
  ChunkIntake(Landing& landing, Codec codec, ByteRange chunk, std::span<const std::byte> payload,
              bool checked);

  // The first `bytes` of the payload are there, no fewer than at the last call.
  void arrived(std::size_t bytes);
  // Of the whole payload, once it has arrived; 0 for a chunk that is not checked.
  std::uint32_t checksum() const { return checked_ ? checksum_.value() : 0; }

 private:
  Landing& landing_;
  const Codec codec_;
  const ByteRange chunk_;
  const std::span<const std::byte> payload_;
  const bool checked_;
  std::size_t taken_ = 0;
  Crc32c checksum_;
};

}  // namespace dpwa
