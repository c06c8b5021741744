#include "dpwa/snapshot/sketch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>

#include "dpwa/base/random.h"
#include "interpolation/kernels/portions.h"

namespace dpwa {
namespace {

constexpr std::uint64_t sign_seed = 0x736b65746368;
constexpr std::size_t block_bytes = SketchPass::block_elements * sizeof(float);

// The sign bits of four values, by the four bits of the index.
constexpr auto sign_masks = [] {
  std::array<std::array<std::uint32_t, 4>, 16> masks{};
  for (std::uint32_t bits = 0; bits < masks.size(); ++bits) {
    for (std::uint32_t k = 0; k < 4; ++k) masks[bits][k] = (bits >> k & 1) << 31;
  }
  return masks;
}();

// Adds a block of values with signs of their own.
void add(std::span<double> sums, std::span<const std::byte, block_bytes> floats,
         std::uint64_t block) {
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

bool SketchPass::advance(std::size_t elements) {
  static_assert(kernels::portion_elements % block_elements == 0);
  kernels::FloatPortion portion;
  const auto& regions = manifest_.regions();
  std::size_t passed = 0;
  for (; region_ < regions.size(); ++region_, at_ = 0) {
    const Region& region = regions[region_];
    if (region.rule != BlendRule::interpolate) continue;
    const std::size_t each = size_of(region.dtype);
    const auto values = model_.subspan(region.offset, region.bytes);
    while (at_ < values.size() / each) {
      if (passed >= elements) return true;
      const std::size_t count = std::min(kernels::portion_elements, values.size() / each - at_);
      const auto floats = portion.widen(region.dtype, values.data() + at_ * each, count);
      std::size_t from = 0;
      for (; from + block_bytes <= floats.size(); from += block_bytes)
        add(sums_, floats.subspan(from).first<block_bytes>(), block_++);
      if (from < floats.size()) {
        std::array<std::byte, block_bytes> rest{};
        std::ranges::copy(floats.subspan(from), rest.begin());
        add(sums_, rest, block_++);
      }
      at_ += count;
      passed += count;
    }
  }
  return false;
}

ModelSketch SketchPass::result() const {
  ModelSketch sketch;
  for (std::size_t k = 0; k < sums_.size(); ++k) sketch.sums[k % ModelSketch::size] += sums_[k];
  return sketch;
}

ModelSketch sketch_of(const Manifest& manifest, std::span<const std::byte> model) {
  SketchPass pass(manifest, model);
  pass.advance(std::numeric_limits<std::size_t>::max());
  return pass.result();
}

}  // namespace dpwa
