#pragma once

// The codecs, a block of 32 elements at a time. Only for the variant sources (see variant.h), after
// a definition of
//   load_int8(from)                      as many signed bytes as a vector has lanes
//   store_int8(low, high, lows, highs)   the reverse for a block, a half each; nearest even
//   largest_of(low, high)                see vector_types.h

#include "interpolation/kernels/encoded_elements.h"

namespace dpwa::kernels {
namespace {

// A code states
//   kBytes                       of an encoded block; a shorter one is a prefix of it
//   Grid, grid(block)            what the rounding in this block depends on
//   load(block, i, grid)         pack i of a block
//   round(pack, grid)            what would have arrived had `pack` been encoded
//   store(block, packs)          encodes a block

using FloatPack = PackOf<float>;

struct CodeFp16 {
  static constexpr std::size_t kBytes = 64;
  struct Grid {};
  static Grid grid(const std::byte*) { return {}; }

  static FloatPack load(const std::byte* block, std::size_t i, Grid) {
    return Float16::load(block, i);
  }
  static FloatPack round(FloatPack pack, Grid) { return {round(pack.low), round(pack.high)}; }
  static void store(std::byte* block, const FloatPack (&packs)[kPacks]) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kPacks; ++i) {
      std::byte* to = block + i * DPWA_VECTOR_BYTES / 2;
      store_half(to, saturate(packs[i].low, kLargest));
      store_half(to + kBlockBytes / 4, saturate(packs[i].high, kLargest));
    }
  }

 private:
  static constexpr std::uint32_t kLargest = 0x477fe000u;  // 65504

  static Floats round(Floats value) {
    std::byte half[DPWA_VECTOR_BYTES / 2];
    store_half(half, saturate(value, kLargest));
    return load_half(half);
  }
};

struct CodeBf16 {
  static constexpr std::size_t kBytes = 64;
  struct Grid {};
  static Grid grid(const std::byte*) { return {}; }

  static FloatPack load(const std::byte* block, std::size_t i, Grid) {
    return InOrderBFloat16::load(block, i);
  }
  static FloatPack round(FloatPack pack, Grid) {
    return {(Floats)round_to_bf16(pack.low), (Floats)round_to_bf16(pack.high)};
  }
  static void store(std::byte* block, const FloatPack (&packs)[kPacks]) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kPacks; ++i) {
      std::byte* to = block + i * DPWA_VECTOR_BYTES / 2;
      InOrderBFloat16::store_half_words(to, round_to_bf16(packs[i].low));
      InOrderBFloat16::store_half_words(to + kBlockBytes / 4, round_to_bf16(packs[i].high));
    }
  }
};

struct Int8Unit {
  std::uint32_t unit;     // bits of 2^(E - 133)
  std::uint32_t inverse;  // bits of 2^(133 - E)
};

// By E, the byte in front of a half block.
struct Int8Units {
  static constexpr std::uint32_t kLeast = 7;  // 2^-126 and its inverse are normal values
  static constexpr std::uint32_t kNotFinite = 255;

  constexpr Int8Units() {
    for (std::uint32_t exponent = 0; exponent < kNotFinite; ++exponent) {
      const std::uint32_t e = exponent < kLeast ? kLeast : exponent;
      of[exponent] = {(e - 6) << 23, (260 - e) << 23};
    }
    of[kNotFinite] = {0x7fc00000u, 127u << 23};
  }
  Int8Unit of[256] = {};
};
constinit const Int8Units kInt8Units;

// Per half of the block: a byte E, then 16 signed bytes q. An element is q * 2^(E - 133), with E
// taken as 7 when below; E = 255: the half block is not finite. (MXINT8 of the OCP Microscaling
// Formats specification 1.0, with blocks of 16.)
struct CodeInt8 {
  static constexpr std::size_t kHalf = 17;
  static constexpr std::size_t kBytes = 2 * kHalf;

  using Unit = Int8Unit;
  struct Grid {
    Unit low, high;
  };
  static Grid grid(const std::byte* block) {
    return {kInt8Units.of[(std::size_t)block[0]], kInt8Units.of[(std::size_t)block[kHalf]]};
  }

  static FloatPack load(const std::byte* block, std::size_t i, const Grid& grid) {
    const std::byte* from = block + 1 + i * DPWA_VECTOR_BYTES / 4;
    return {load_int8(from) * all_floats(grid.low.unit),
            load_int8(from + kHalf) * all_floats(grid.high.unit)};
  }
  static FloatPack round(FloatPack pack, const Grid& grid) {
    return {round(pack.low, grid.low), round(pack.high, grid.high)};
  }
  static void store(std::byte* block, const FloatPack (&packs)[kPacks]) {
    Words low = {}, high = {};
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kPacks; ++i) {
      low = larger(low, (Words)packs[i].low & ~kSign);
      high = larger(high, (Words)packs[i].high & ~kSign);
    }
    const Largest largest = largest_of(low, high);
    if (largest.low > kLargest || largest.high > kLargest) {
      return store_extremes(block, packs, largest);
    }
    store_within(block, packs, exponent_of(largest.low), exponent_of(largest.high));
  }

 private:
  static constexpr std::uint32_t kLeast = Int8Units::kLeast;
  static constexpr std::uint32_t kLargest = 0x7f7e0000u;  // 127 * 2^121
  // 1.5 * 2^23: what it is added to is rounded to a whole number, within +-2^22.
  static constexpr std::uint32_t kWhole = 0x4b400000u;

  static Words larger(Words a, Words b) { return a > b ? a : b; }

  static Floats round(Floats value, Unit unit) {
    const Floats scaled = value * all_floats(unit.inverse);
    const Floats whole = (scaled + all_floats(kWhole)) - all_floats(kWhole);
    // What is so large on this grid, or not a number, stays as it is.
    const SignedWords order = (SignedWords)((Words)scaled & ~kSign);
    return order < (149 << 23) ? whole * all_floats(unit.unit) : value;  // 2^22
  }

  // The least power of two that leaves no q above 127: one more where the largest element is above
  // 127/128 of the next power.
  static std::uint32_t exponent_of(std::uint32_t largest) {
    const std::uint32_t exponent = (largest + 0x1ffffu) >> 23;
    return exponent < kLeast ? kLeast : exponent;
  }

  // For finite values within kLargest.
  static void store_within(std::byte* block, const FloatPack (&packs)[kPacks], std::uint32_t low,
                           std::uint32_t high) {
    Floats lows[kPacks], highs[kPacks];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kPacks; ++i) {
      lows[i] = packs[i].low * all_floats(kInt8Units.of[low].inverse);
      highs[i] = packs[i].high * all_floats(kInt8Units.of[high].inverse);
    }
    block[0] = (std::byte)low;
    block[kHalf] = (std::byte)high;
    store_int8(block + 1, block + kHalf + 1, lows, highs);
  }

  // A half that is not finite is stored as zeros, larger values as the largest.
  __attribute__((noinline)) static void store_extremes(std::byte* block,
                                                       const FloatPack (&packs)[kPacks],
                                                       Largest largest) {
    const bool low = largest.low < kInfinite, high = largest.high < kInfinite;
    FloatPack kept[kPacks];
    for (std::size_t i = 0; i < kPacks; ++i) {
      kept[i].low = low ? saturate(packs[i].low, kLargest) : Floats{};
      kept[i].high = high ? saturate(packs[i].high, kLargest) : Floats{};
    }
    const auto bounded = [](std::uint32_t value) { return value < kLargest ? value : kLargest; };
    store_within(block, kept, exponent_of(bounded(largest.low)),
                 exponent_of(bounded(largest.high)));
    if (!low) block[0] = (std::byte)Int8Units::kNotFinite;
    if (!high) block[kHalf] = (std::byte)Int8Units::kNotFinite;
  }
};

}  // namespace
}  // namespace dpwa::kernels
