#include "dpwa/gossip/host_parameters.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "interpolation/kernels/kernels.h"

namespace dpwa {

HostParameters::HostParameters(Manifest manifest, std::span<std::byte> memory)
    : manifest_(std::move(manifest)), memory_(memory) {
  assert(memory_.size() == manifest_.total_bytes());
}

void HostParameters::copy_out(std::span<std::byte> snapshot) {
  std::memcpy(snapshot.data(), memory_.data(), memory_.size());
}

void HostParameters::blend(const Landing& landing, double factor) {
  blend_regions(manifest_, landing.range(), memory_, landing.bytes(), landing.mode(), factor);
}

void HostParameters::assign(std::span<const std::byte> snapshot) {
  std::memcpy(memory_.data(), snapshot.data(), memory_.size());
}

void blend_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                   std::span<const std::byte> landed, LandingMode mode, double factor) {
  for (const Region& region : manifest.regions()) {
    const ByteRange piece = overlap(range, region.range());
    if (piece.length == 0) continue;
    const auto x = memory.subspan(piece.offset, piece.length);
    const auto y = landed.subspan(piece.offset, piece.length);
    switch (region.rule) {
      case BlendRule::interpolate:
        if (mode == LandingMode::difference) {
          kernels::delta(region.dtype, x, y, factor);
        } else {
          kernels::lerp(region.dtype, x, y, factor);
        }
        break;
      case BlendRule::maximum:
        kernels::maximum(region.dtype, x, y);
        break;
      case BlendRule::carry:
        break;
    }
  }
}

}  // namespace dpwa
