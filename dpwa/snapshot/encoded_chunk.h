#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/manifest.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

// A range of a snapshot travels in chunks of `chunk_bytes` of the snapshot, counted from the begin
// of the range. With the raw codec the payload of a chunk is those bytes. With any other codec it
// is the pieces of the chunk (its overlap with each region of the manifest), in order and without
// the gaps between regions; each piece is encoded by itself where the codec applies. Both ends
// compute every length from the same manifest with these functions and take none from a peer. Pure.
//
// Offsets of ranges and chunks are multiples of 64, and so is chunk_bytes.

// The part of one region within a chunk, and its place in the payload.
struct ChunkPiece {
  const Region* region = nullptr;
  ByteRange range;  // of the snapshot
  bool encoded = false;
  ByteRange payload;
};

// Whether the codec applies to tensors of the region.
inline bool encodes(Codec codec, const Region& region) {
  return region.rule == BlendRule::interpolate && encodes(codec, region.dtype);
}

// Calls `use(piece)` for every piece of `chunk`, in order.
template <class Use>
void for_each_piece(const Manifest& manifest, Codec codec, ByteRange chunk, Use use) {
  std::uint64_t at = 0;
  for (const Region& region : manifest.regions()) {
    ChunkPiece piece{&region, overlap(chunk, region.range()), encodes(codec, region), {}};
    if (piece.range.length == 0) continue;
    if (codec == Codec::raw) at = piece.range.offset - chunk.offset;
    piece.payload = {at, piece.encoded ? encoded_bytes(region.dtype, codec, piece.range.length)
                                       : piece.range.length};
    at = piece.payload.end();
    use(piece);
  }
}

// The payload of one chunk; never more than chunk.length.
std::uint64_t payload_bytes(const Manifest& manifest, Codec codec, ByteRange chunk);
// All chunks of a range together. The time does not depend on the length of the range.
std::uint64_t payload_bytes(const Manifest& manifest, Codec codec, ByteRange range,
                            std::uint64_t chunk_bytes);

// Whether the range holds whole elements of every region that is encoded, as it must to travel.
bool holds_whole_elements(const Manifest& manifest, Codec codec, ByteRange range);

// Writes the payload of `chunk`, payload_bytes() long. Not for the raw codec, whose payload is the
// snapshot itself.
void encode_chunk(const Manifest& manifest, Codec codec, std::span<const std::byte> snapshot,
                  ByteRange chunk, std::span<std::byte> payload);

}  // namespace dpwa
