#include "dpwa/net/served_chunks.h"

#include <cassert>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa {

ServedChunks::ServedChunks(const Manifest& manifest, std::shared_ptr<const Snapshot> snapshot,
                           Codec codec, bool checksums, std::optional<StagingPool::Lease> staging)
    : manifest_(manifest),
      snapshot_(std::move(snapshot)),
      codec_(codec),
      checksums_(checksums),
      staging_(std::move(staging)) {
  assert(codec_ == Codec::raw || staging_);
}

ServedChunks::Chunk ServedChunks::get(ByteRange chunk) {
  if (codec_ == Codec::raw) {
    return {snapshot_->bytes().subspan(chunk.offset, chunk.length),
            checksums_ ? snapshot_->chunk_checksum(chunk.offset, chunk.length) : 0};
  }
  const auto payload = staging_->bytes().first(payload_bytes(manifest_, codec_, chunk));
  encode_chunk(manifest_, codec_, snapshot_->bytes(), chunk, payload);
  return {payload, checksums_ ? crc32c(payload) : 0};
}

}  // namespace dpwa
