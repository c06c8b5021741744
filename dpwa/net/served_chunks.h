#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "dpwa/net/staging_pool.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/value_store.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

// The chunks of one reply: straight from the value's memory with the raw codec, else encoded one
// at a time into a staging buffer and checksummed while hot in cache. Holds the value. Rx
// thread.
class ServedChunks {
 public:
  // `staging`: for codecs other than raw, of at least the largest chunk's length. Without
  // `checksums` they are 0.
  ServedChunks(const Manifest& manifest, std::shared_ptr<const Value> value, Codec codec,
               bool checksums, std::optional<StagingPool::Lease> staging);

  struct Chunk {
    std::span<const std::byte> payload;  // until the next call
    std::uint32_t crc = 0;
  };
  Chunk get(ByteRange chunk);

 private:
  const Manifest& manifest_;
  const std::shared_ptr<const Value> value_;
  const Codec codec_;
  const bool checksums_;
  std::optional<StagingPool::Lease> staging_;
};

}  // namespace dpwa
