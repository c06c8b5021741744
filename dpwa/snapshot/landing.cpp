#include "dpwa/snapshot/landing.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dpwa {

Landing::Landing(const Manifest& manifest, const BufferAllocator& allocate)
    : manifest_(manifest), buffer_(allocate(manifest.total_bytes())) {}

void Landing::begin(LandingMode mode, std::shared_ptr<const Snapshot> own) {
  mode_ = mode;
  own_ = std::move(own);
  stats_ = {};
}

void Landing::consume(std::uint64_t offset, std::span<const std::byte> peer) {
  const std::uint64_t end = offset + peer.size();
  for (const Region& region : manifest_.regions()) {
    const std::uint64_t from = std::max(offset, region.offset);
    const std::uint64_t to = std::min(end, region.offset + region.bytes);
    if (from >= to) continue;
    const auto source = peer.subspan(from - offset, to - from);
    const auto target = buffer_.bytes().subspan(from, to - from);
    if (region.rule != BlendRule::interpolate) {
      std::memcpy(target.data(), source.data(), source.size());
      continue;
    }
    const auto own = own_->bytes().subspan(from, to - from);
    stats_ += mode_ == LandingMode::difference
                  ? kernels::land_difference(region.dtype, target, source, own)
                  : kernels::land_copy(region.dtype, target, source, own);
  }
}

}  // namespace dpwa
