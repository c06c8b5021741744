#include "dpwa/snapshot/sketch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "dpwa/base/random.h"
#include "interpolation/kernels/portions.h"

namespace dpwa {
namespace {

constexpr std::uint64_t sign_seed = 0x736b65746368;
constexpr std::size_t block_elements = 64;  // which take neighbouring sums
constexpr std::size_t block_bytes = block_elements * sizeof(float);
// The block at the last sum goes on behind it.
using Sums = std::array<double, ModelSketch::size + block_elements>;

// The sign bits of four values, by the four bits of the index.
constexpr auto sign_masks = [] {
  std::array<std::array<std::uint32_t, 4>, 16> masks{};
  for (std::uint32_t bits = 0; bits < masks.size(); ++bits) {
    for (std::uint32_t k = 0; k < 4; ++k) masks[bits][k] = (bits >> k & 1) << 31;
  }
  return masks;
}();

// Adds a block of values with signs of their own.
void add(Sums& sums, std::span<const std::byte, block_bytes> floats, std::uint64_t block) {
  std::uint64_t signs = derive_seed(sign_seed, {block});
  double* sum = sums.data() + (signs * 0x9e3779b97f4a7c15 >> 56);  // from one of 256
  for (std::size_t at = 0; at < block_bytes; at += 16, signs >>= 4, sum += 4) {
    const auto& mask = sign_masks[signs & 15];
    std::array<std::uint32_t, 4> bits;
    std::memcpy(bits.data(), floats.data() + at, sizeof bits);
    for (std::size_t k = 0; k < 4; ++k) bits[k] ^= mask[k];
    std::array<float, 4> values;
    std::memcpy(values.data(), bits.data(), sizeof values);
    for (std::size_t k = 0; k < 4; ++k) sum[k] += values[k];
  }
}

}  // namespace

ModelSketch sketch_of(const Manifest& manifest, std::span<const std::byte> model) {
  static_assert(kernels::portion_elements % block_elements == 0);
  Sums sums{};
  kernels::FloatPortion portion;
  std::uint64_t block = 0;
  for (const Region& region : manifest.regions()) {
    if (region.rule != BlendRule::interpolate) continue;
    const std::size_t each = size_of(region.dtype);
    const auto values = model.subspan(region.offset, region.bytes);
    kernels::for_each_portion(values.size() / each, [&](std::size_t from, std::size_t count) {
      const auto floats = portion.widen(region.dtype, values.data() + from * each, count);
      std::size_t at = 0;
      for (; at + block_bytes <= floats.size(); at += block_bytes)
        add(sums, floats.subspan(at).first<block_bytes>(), block++);
      if (at == floats.size()) return;
      std::array<std::byte, block_bytes> rest{};
      std::ranges::copy(floats.subspan(at), rest.begin());
      add(sums, rest, block++);
    });
  }
  ModelSketch sketch;
  for (std::size_t k = 0; k < sums.size(); ++k) sketch.sums[k % ModelSketch::size] += sums[k];
  return sketch;
}

}  // namespace dpwa
