#include "dpwa/gossip/blend_regions.h"

namespace dpwa {
namespace {

auto part(auto span, ByteRange range) {
  return span.subspan(range.offset, range.length);
}

}  // namespace

void blend_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                   std::span<const std::byte> landed, LandingMode mode, double factor) {
  for (const Region& region : manifest.regions()) {
    const ByteRange piece = overlap(range, region.range());
    if (piece.length == 0 || region.rule != BlendRule::interpolate) continue;
    const auto x = part(memory, piece);
    const auto y = part(landed, piece);
    if (mode == LandingMode::difference) {
      kernels::delta(region.dtype, x, y, factor);
    } else {
      kernels::lerp(region.dtype, x, y, factor);
    }
  }
}

void take_larger_counters(const Manifest& manifest, std::span<std::byte> memory,
                          std::span<const std::byte> other) {
  for (const Region& region : manifest.regions()) {
    if (region.rule == BlendRule::maximum)
      kernels::maximum(region.dtype, part(memory, region.range()), part(other, region.range()));
  }
}

void blend_and_copy_regions(const Manifest& manifest, ByteRange range, std::span<std::byte> memory,
                            std::span<const std::byte> landed, ByteRange landed_range,
                            LandingMode mode, double factor, std::span<std::byte> copy,
                            kernels::Stores stores) {
  // Whatever no region interpolates is copied behind it: counters, carried tensors, gaps, and what
  // has not landed.
  std::uint64_t copied = range.offset;
  const auto copy_until = [&](std::uint64_t end) {
    const ByteRange rest{copied, end - copied};
    kernels::copy(part(copy, rest), part(memory, rest), stores);
  };
  const ByteRange blended = overlap(range, landed_range);
  for (const Region& region : manifest.regions()) {
    const ByteRange piece = overlap(blended, region.range());
    if (piece.length == 0 || region.rule != BlendRule::interpolate) continue;
    const auto x = part(memory, piece);
    const auto y = part(landed, piece);
    copy_until(piece.offset);
    if (mode == LandingMode::difference) {
      kernels::delta_copy(region.dtype, x, y, part(copy, piece), factor, stores);
    } else {
      kernels::lerp_copy(region.dtype, x, y, part(copy, piece), factor, stores);
    }
    copied = piece.end();
  }
  copy_until(range.end());
}

}  // namespace dpwa
