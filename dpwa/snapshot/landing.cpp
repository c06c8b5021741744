#include "dpwa/snapshot/landing.h"

#include <cstring>
#include <utility>

#include "dpwa/snapshot/encoded_chunk.h"
#include "interpolation/kernels/encoding.h"

namespace dpwa {

Landing::Landing(const Manifest& manifest, const BufferAllocator& allocate)
    : manifest_(manifest),
      buffer_(allocate(manifest.total_bytes())),
      stores_(manifest.total_bytes() < stream_from_bytes ? kernels::Stores::cached
                                                         : kernels::Stores::streaming) {}

void Landing::begin(LandingMode mode, std::shared_ptr<const Snapshot> own, ByteRange range) {
  mode_ = mode;
  range_ = range;
  own_ = std::move(own);
  stats_ = {};
}

void Landing::prefetch(ByteRange chunk) const {
  if (own_ == nullptr) return;
  constexpr std::size_t line_bytes = 64;
  const auto own = own_->bytes().subspan(chunk.offset, chunk.length);
  for (std::size_t at = 0; at < own.size(); at += line_bytes) __builtin_prefetch(&own[at]);
}

void Landing::consume(std::uint64_t offset, std::span<const std::byte> peer) {
  consume(Codec::raw, {offset, peer.size()}, peer);
}

void Landing::consume(Codec codec, ByteRange chunk, std::span<const std::byte> payload) {
  for_each_piece(manifest_, codec, chunk, [&](const ChunkPiece& piece) {
    const DType dtype = piece.region->dtype;
    const auto source = payload.subspan(piece.payload.offset, piece.payload.length);
    const auto target = buffer_.bytes().subspan(piece.range.offset, piece.range.length);
    if (piece.region->rule != BlendRule::interpolate) {
      std::memcpy(target.data(), source.data(), source.size());
      return;
    }
    const auto own = own_->bytes().subspan(piece.range.offset, piece.range.length);
    const bool difference = mode_ == LandingMode::difference;
    if (piece.encoded) {
      stats_ += difference ? kernels::land_encoded_difference(dtype, codec, target, source, own)
                           : kernels::land_encoded_copy(dtype, codec, target, source, own);
    } else {
      stats_ += difference ? kernels::land_difference(dtype, target, source, own, stores_)
                           : kernels::land_copy(dtype, target, source, own);
    }
  });
}

}  // namespace dpwa
