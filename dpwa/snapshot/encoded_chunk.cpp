#include "dpwa/snapshot/encoded_chunk.h"

#include <cstring>

#include "dpwa/base/invariant.h"
#include "interpolation/kernels/encoding.h"

namespace dpwa {

std::uint64_t payload_bytes(const Manifest& manifest, Codec codec, ByteRange chunk) {
  return chunk.length == 0 ? 0 : payload_bytes(manifest, codec, chunk, chunk.length);
}

std::uint64_t payload_bytes(const Manifest& manifest, Codec codec, ByteRange range,
                            std::uint64_t chunk_bytes) {
  if (codec == Codec::raw) return range.length;
  DPWA_INVARIANT(chunk_bytes > 0, "a range is cut into chunks of some bytes", range.length);
  std::uint64_t bytes = 0;
  for (const Region& region : manifest.regions()) {
    const ByteRange run = overlap(range, region.range());
    if (run.length == 0) continue;
    if (!encodes(codec, region)) {
      bytes += run.length;
      continue;
    }
    // The chunks cut the run into a first piece, whole chunks, and a last piece.
    const std::uint64_t from = run.offset - range.offset;
    const std::uint64_t to = run.end() - range.offset;
    const std::uint64_t first = from / chunk_bytes;
    const std::uint64_t last = (to - 1) / chunk_bytes;
    const auto encoded = [&](std::uint64_t length) {
      return encoded_bytes(region.dtype, codec, length);
    };
    bytes += first == last
                 ? encoded(run.length)
                 : encoded((first + 1) * chunk_bytes - from) +
                       (last - first - 1) * encoded(chunk_bytes) + encoded(to - last * chunk_bytes);
  }
  return bytes;
}

bool holds_whole_elements(const Manifest& manifest, Codec codec, ByteRange range) {
  for (const Region& region : manifest.regions()) {
    if (!encodes(codec, region)) continue;
    if (overlap(range, region.range()).length % size_of(region.dtype) != 0) return false;
  }
  return true;
}

void encode_chunk(const Manifest& manifest, Codec codec, std::span<const std::byte> snapshot,
                  ByteRange chunk, std::span<std::byte> payload) {
  DPWA_INVARIANT(codec != Codec::raw && chunk.end() <= snapshot.size(),
                 "what is encoded is a part of the snapshot", codec, chunk.offset, chunk.length,
                 snapshot.size());
  for_each_piece(manifest, codec, chunk, [&](const ChunkPiece& piece) {
    DPWA_INVARIANT(piece.payload.end() <= payload.size(),
                   "an encoded chunk has room in its payload", piece.payload.offset,
                   piece.payload.length, payload.size());
    const auto from = snapshot.subspan(piece.range.offset, piece.range.length);
    const auto to = payload.subspan(piece.payload.offset, piece.payload.length);
    if (piece.encoded) {
      kernels::encode(piece.region->dtype, codec, to, from);
    } else {
      std::memcpy(to.data(), from.data(), from.size());
    }
  });
}

}  // namespace dpwa
