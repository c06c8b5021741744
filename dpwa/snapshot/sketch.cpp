#include "dpwa/snapshot/sketch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "dpwa/base/random.h"
#include "interpolation/kernels/portions.h"

namespace dpwa {
namespace {

constexpr std::uint64_t sign_seed = 0x736b65746368;

// Adds up to 64 values with signs of their own.
void add(ModelSketch& sketch, std::span<const std::byte> floats, std::uint64_t signs) {
  for (std::size_t k = 0; k * sizeof(float) < floats.size(); ++k) {
    std::uint32_t bits;
    std::memcpy(&bits, floats.data() + k * sizeof bits, sizeof bits);
    bits ^= static_cast<std::uint32_t>(signs >> k & 1) << 31;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    sketch.sums[k] += value;
  }
}

}  // namespace

ModelSketch sketch_of(const Manifest& manifest, std::span<const std::byte> model) {
  constexpr std::size_t block_bytes = ModelSketch::size * sizeof(float);
  static_assert(kernels::portion_elements % ModelSketch::size == 0);
  ModelSketch sketch;
  kernels::FloatPortion portion;
  std::uint64_t block = 0;
  for (const Region& region : manifest.regions()) {
    if (region.rule != BlendRule::interpolate) continue;
    const std::size_t each = size_of(region.dtype);
    const auto values = model.subspan(region.offset, region.bytes);
    kernels::for_each_portion(values.size() / each, [&](std::size_t from, std::size_t count) {
      const auto floats = portion.widen(region.dtype, values.data() + from * each, count);
      for (std::size_t at = 0; at < floats.size(); at += block_bytes) {
        const auto part = floats.subspan(at, std::min(block_bytes, floats.size() - at));
        add(sketch, part, derive_seed(sign_seed, {block++}));
      }
    });
  }
  return sketch;
}

}  // namespace dpwa
