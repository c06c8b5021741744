#include "dpwa/net/served_chunks.h"

#include <cassert>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa {

ServedChunks::ServedChunks(const Manifest& manifest, std::shared_ptr<const Value> value,
                           Codec codec, bool checksums, std::optional<StagingPool::Lease> staging)
    : manifest_(manifest),
      value_(std::move(value)),
      codec_(codec),
      checksums_(checksums),
      staging_(std::move(staging)) {
  assert(codec_ == Codec::raw || staging_);
}

ServedChunks::Chunk ServedChunks::get(ByteRange chunk) {
  if (codec_ == Codec::raw) {
    return {value_->bytes().subspan(chunk.offset, chunk.length),
            checksums_ ? value_->chunk_checksum(chunk.offset, chunk.length) : 0};
  }
  const auto payload = staging_->bytes().first(payload_bytes(manifest_, codec_, chunk));
  encode_chunk(manifest_, codec_, value_->bytes(), chunk, payload);
  return {payload, checksums_ ? crc32c(payload) : 0};
}

}  // namespace dpwa
