#pragma once

// The codecs, a block of 32 elements at a time. Only for the variant sources (see variant.h).

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

// Per half of the block: a byte E, then 16 signed bytes q. An element is q * 2^(E - 133), with E
// taken as 7 when below; E = 255: the half block is not finite. (MXINT8 of the OCP Microscaling
// Formats specification 1.0, with blocks of 16.)
struct CodeInt8 {
  static constexpr std::size_t kHalf = 17;
  static constexpr std::size_t kBytes = 2 * kHalf;

  struct Unit {
    std::uint32_t unit;     // bits of 2^(E - 133)
    std::uint32_t inverse;  // bits of 2^(133 - E)
  };
  struct Grid {
    Unit low, high;
  };
  static Grid grid(const std::byte* block) {
    return {unit_of((std::uint32_t)block[0]), unit_of((std::uint32_t)block[kHalf])};
  }

  static FloatPack load(const std::byte* block, std::size_t i, Grid grid) {
    const std::byte* from = block + 1 + i * sizeof(Bytes);
    return {load_bytes_of(from, grid.low), load_bytes_of(from + kHalf, grid.high)};
  }
  static FloatPack round(FloatPack pack, Grid grid) {
    return {round(pack.low, grid.low), round(pack.high, grid.high)};
  }
  static void store(std::byte* block, const FloatPack (&packs)[kPacks]) {
    Floats half[kPacks];
    for (std::size_t i = 0; i < kPacks; ++i) half[i] = packs[i].low;
    store_half_block(block, half);
    for (std::size_t i = 0; i < kPacks; ++i) half[i] = packs[i].high;
    store_half_block(block + kHalf, half);
  }

 private:
  typedef std::int8_t Bytes __attribute__((vector_size(DPWA_VECTOR_BYTES / 4)));
  static constexpr std::uint32_t kLeast = 7;  // of E: 2^-126 and its inverse are normal values
  static constexpr std::uint32_t kNotFinite = 255;
  static constexpr std::uint32_t kLargest = 0x7f7e0000u;  // 127 * 2^121
  // 1.5 * 2^23: what it is added to is rounded to a whole number, within +-2^22, and lies in the
  // lower bits of the sum.
  static constexpr std::uint32_t kWhole = 0x4b400000u;

  static Unit unit_of(std::uint32_t exponent) {
    if (exponent == kNotFinite) return {0x7fc00000u, 127u << 23};
    const std::uint32_t e = exponent < kLeast ? kLeast : exponent;
    return {(e - 6) << 23, (260 - e) << 23};
  }

  static Floats load_bytes_of(const std::byte* from, Unit unit) {
    const auto whole = __builtin_convertvector(load_bytes<Bytes>(from), SignedWords);
    return __builtin_convertvector(whole, Floats) * all_floats(unit.unit);
  }

  static Floats round(Floats value, Unit unit) {
    const Floats scaled = value * all_floats(unit.inverse);
    const Floats whole = (scaled + all_floats(kWhole)) - all_floats(kWhole);
    // What is so large on this grid, or not a number, stays as it is.
    const SignedWords order = (SignedWords)((Words)scaled & ~kSign);
    const SignedWords small = order < (149 << 23);  // 2^22
    return (Floats)select(small, (Words)(whole * all_floats(unit.unit)), (Words)value);
  }

  static void store_half_block(std::byte* to, Floats (&values)[kPacks]) {
    const std::uint32_t largest = largest_magnitude(values);
    if (largest >= kInfinite) {
      to[0] = (std::byte)kNotFinite;
      for (std::size_t i = 0; i < kPacks; ++i) store_bytes(to + 1 + i * sizeof(Bytes), Bytes{});
      return;
    }
    if (largest > kLargest) {
      for (Floats& value : values) value = saturate(value, kLargest);
    }
    // The least power of two that leaves no q above 127: one more where the largest element is
    // above 127/128 of the next power.
    std::uint32_t exponent = ((largest > kLargest ? kLargest : largest) + 0x1ffffu) >> 23;
    if (exponent < kLeast) exponent = kLeast;
    to[0] = (std::byte)exponent;
    const Floats inverse = all_floats(unit_of(exponent).inverse);
    for (std::size_t i = 0; i < kPacks; ++i) {
      const Words whole = (Words)(values[i] * inverse + all_floats(kWhole));
      store_bytes(to + 1 + i * sizeof(Bytes), __builtin_convertvector((SignedWords)whole, Bytes));
    }
  }

  // As bits, which compare as the magnitudes do. In quarters of the half block, so that little is
  // left to compare lane by lane.
  static std::uint32_t largest_magnitude(const Floats (&values)[kPacks]) {
    typedef std::int32_t Quarter __attribute__((vector_size(16)));
    Quarter quarters[4];
    static_assert(sizeof quarters == sizeof values);
    __builtin_memcpy(quarters, values, sizeof quarters);
    Quarter largest = {};
    for (const Quarter& quarter : quarters) {
      const Quarter magnitude = quarter & 0x7fffffff;
      largest = magnitude > largest ? magnitude : largest;
    }
    const std::int32_t even = largest[0] > largest[2] ? largest[0] : largest[2];
    const std::int32_t odd = largest[1] > largest[3] ? largest[1] : largest[3];
    return (std::uint32_t)(even > odd ? even : odd);
  }
};

}  // namespace
}  // namespace dpwa::kernels
