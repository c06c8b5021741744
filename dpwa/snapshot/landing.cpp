#include "dpwa/snapshot/landing.h"

#include <cstring>
#include <utility>

namespace dpwa {

Landing::Landing(const Manifest& manifest, const BufferAllocator& allocate)
    : manifest_(manifest), buffer_(allocate(manifest.total_bytes())) {}

void Landing::begin(LandingMode mode, std::shared_ptr<const Snapshot> own, ByteRange range) {
  mode_ = mode;
  range_ = range;
  own_ = std::move(own);
  stats_ = {};
}

void Landing::consume(std::uint64_t offset, std::span<const std::byte> peer) {
  for (const Region& region : manifest_.regions()) {
    const ByteRange piece = overlap({offset, peer.size()}, region.range());
    if (piece.length == 0) continue;
    const auto source = peer.subspan(piece.offset - offset, piece.length);
    const auto target = buffer_.bytes().subspan(piece.offset, piece.length);
    if (region.rule != BlendRule::interpolate) {
      std::memcpy(target.data(), source.data(), source.size());
      continue;
    }
    const auto own = own_->bytes().subspan(piece.offset, piece.length);
    stats_ += mode_ == LandingMode::difference
                  ? kernels::land_difference(region.dtype, target, source, own)
                  : kernels::land_copy(region.dtype, target, source, own);
  }
}

}  // namespace dpwa
