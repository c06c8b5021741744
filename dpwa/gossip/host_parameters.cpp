#include "dpwa/gossip/host_parameters.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "dpwa/base/invariant.h"
#include "dpwa/base/processors.h"

namespace dpwa {
namespace {

unsigned usable_threads(std::size_t bytes, unsigned max_threads) {
  if (bytes < HostParameters::threads_from_bytes) return 1;
  return std::min(max_threads, static_cast<unsigned>(processor_count()));
}

auto part(auto span, ByteRange range) {
  return span.subspan(range.offset, range.length);
}

}  // namespace

HostParameters::HostParameters(Manifest manifest, std::span<std::byte> memory, unsigned max_threads)
    : manifest_(std::move(manifest)),
      memory_(memory),
      stores_(memory.size() < stream_from_bytes ? kernels::Stores::cached
                                                : kernels::Stores::streaming),
      passes_(usable_threads(memory.size(), max_threads)) {
  DPWA_INVARIANT(memory_.size() == manifest_.total_bytes(),
                 "the memory of the parameters is that of the manifest", memory_.size(),
                 manifest_.total_bytes());
}

template <class Pass>
void HostParameters::run(SharingChoice& choice, ByteRange bytes, const Pass& pass) {
  if (passes_.threads() == 1 || bytes.length < threads_from_bytes) return pass(bytes);
  const bool share = choice.share();
  const auto from = std::chrono::steady_clock::now();
  if (share) {
    passes_.run(bytes, pass);
  } else {
    pass(bytes);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - from;
  choice.took(taken.count() / static_cast<double>(bytes.length));
}

void HostParameters::copy_out(std::span<std::byte> snapshot) {
  run(copies_, {0, memory_.size()}, [&](ByteRange piece) {
    kernels::copy(snapshot.subspan(piece.offset, piece.length),
                  memory_.subspan(piece.offset, piece.length), stores_);
  });
}

void HostParameters::blend(const Landing& landing, double factor) {
  run(blends_, landing.range(), [&](ByteRange piece) {
    blend_regions(manifest_, piece, memory_, landing.bytes(), landing.mode(), factor);
  });
}

void HostParameters::blend_and_copy_out(const Landing& landing, double factor,
                                        std::span<std::byte> snapshot) {
  run(blends_with_copy_, {0, memory_.size()}, [&](ByteRange piece) {
    blend_and_copy_regions(manifest_, piece, memory_, landing.bytes(), landing.range(),
                           landing.mode(), factor, snapshot, stores_);
  });
}

void HostParameters::assign(std::span<const std::byte> snapshot) {
  std::ranges::copy(snapshot.first(memory_.size()), memory_.begin());
}

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
  // Bytes that are not blended are copied: counters, carried tensors, gaps, and what has not
  // landed.
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
