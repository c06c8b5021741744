#pragma once

// The elements of encoded passes: those of tensors that elements.h does not have in the order
// needed, and those of codecs. Only for the variant sources, after a definition of load_half and
// store_half.
//
// Low and high are the first and second half of a block of 32 elements in all of them, so that any
// tensor element goes with any code.

#include "interpolation/kernels/elements.h"

namespace dpwa::kernels {
namespace {

// Bits of fp32, and of its values.
inline constexpr std::uint32_t kSign = 0x80000000u;
inline constexpr std::uint32_t kInfinite = 0x7f800000u;

// The same in every lane.
inline Words all_words(std::uint32_t value) {
  return Words{} + value;
}
inline Floats all_floats(std::uint32_t bits) {
  return (Floats)all_words(bits);
}

// `value` within +-limit (given as bits of a finite value); infinity and NaN stay.
inline Floats saturate(Floats value, std::uint32_t limit) {
  const Words bits = (Words)value;
  const Words magnitude = bits & ~kSign;
  const SignedWords order = (SignedWords)magnitude;
  const SignedWords beyond = (order > (std::int32_t)limit) & (order < (std::int32_t)kInfinite);
  return (Floats)(select(beyond, all_words(limit), magnitude) | (bits & kSign));
}

// To bf16 nearest even, as fp32 bits whose lower half is zero.
inline Words round_to_bf16(Floats value) {
  const Words bits = (Words)value;
  const Words magnitude = bits & ~kSign;
  const SignedWords order = (SignedWords)magnitude;
  Words rounded = (magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) & 0xffff0000u;
  // The largest values would round up to infinity.
  rounded = select(order >= 0x7f7f8000, all_words(0x7f7f0000u), rounded);
  rounded = select(order >= (std::int32_t)kInfinite, magnitude & 0xffff0000u, rounded);
  rounded = select(order > (std::int32_t)kInfinite, all_words(0x7fc00000u), rounded);
  return rounded | (bits & kSign);
}

// bf16 with its lanes in the order of memory.
struct InOrderBFloat16 {
  using Scalar = float;
  using Pack = PackOf<Scalar>;
  using Vector = Pack::Vector;
  static constexpr std::size_t kSize = 2;
  static constexpr bool kExact = false;

  static Pack load(const std::byte* block, std::size_t i) {
    const std::byte* from = block + i * DPWA_VECTOR_BYTES / 2;
    return {load_half_words(from), load_half_words(from + kBlockBytes / 4)};
  }
  static Pack store(std::byte* block, std::size_t i, Pack pack) {
    std::byte* to = block + i * DPWA_VECTOR_BYTES / 2;
    // A difference beyond the largest value must be seen as an overflow: no saturation here.
    const Words low = round(pack.low);
    const Words high = round(pack.high);
    store_half_words(to, low);
    store_half_words(to + kBlockBytes / 4, high);
    return {(Floats)low, (Floats)high};
  }

  static Floats load_half_words(const std::byte* from) {
    return (Floats)(__builtin_convertvector(load_bytes<HalfWords>(from), Words) << 16);
  }
  static void store_half_words(std::byte* to, Words upper_halves) {
    store_bytes(to, __builtin_convertvector(upper_halves >> 16, HalfWords));
  }

 private:
  static Words round(Floats value) {
    const Words bits = (Words)value;
    const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
    const SignedWords order = (SignedWords)(bits & ~kSign);
    return select(order > (std::int32_t)kInfinite, all_words(0x7fc00000u), rounded);
  }
};

// fp64 seen as fp32: beyond its range the largest fp32, unless infinite or NaN.
struct NarrowFloat64 {
  using Scalar = float;
  using Pack = PackOf<Scalar>;
  using Vector = Pack::Vector;
  static constexpr std::size_t kSize = 8;
  static constexpr bool kExact = true;

  static Pack load(const std::byte* block, std::size_t i) {
    const std::byte* from = block + 2 * i * DPWA_VECTOR_BYTES;
    return {narrow(from), narrow(from + kBlockBytes)};
  }
  static Pack store(std::byte* block, std::size_t i, Pack pack) {
    std::byte* to = block + 2 * i * DPWA_VECTOR_BYTES;
    widen(to, pack.low);
    widen(to + kBlockBytes, pack.high);
    return pack;
  }

 private:
  typedef float HalfFloats __attribute__((vector_size(DPWA_VECTOR_BYTES / 2)));
  static constexpr double kLargest = 0x1.fffffep127;

  static HalfFloats narrow_half(const std::byte* from) {
    const Doubles value = load_bytes<Doubles>(from);
    const Doubles infinite = Doubles{} + __builtin_inf();
    const Doubles upper = ((value > kLargest) & (value < infinite)) ? Doubles{} + kLargest : value;
    const Doubles both = ((upper < -kLargest) & (upper > -infinite)) ? Doubles{} - kLargest : upper;
    return __builtin_convertvector(both, HalfFloats);
  }
  static Floats narrow(const std::byte* from) {
    std::byte halves[DPWA_VECTOR_BYTES];
    store_bytes(halves, narrow_half(from));
    store_bytes(halves + sizeof(HalfFloats), narrow_half(from + DPWA_VECTOR_BYTES));
    return load_bytes<Floats>(halves);
  }
  static void widen(std::byte* to, Floats value) {
    std::byte halves[DPWA_VECTOR_BYTES];
    store_bytes(halves, value);
    for (std::size_t half = 0; half < 2; ++half) {
      const auto narrow = load_bytes<HalfFloats>(halves + half * sizeof(HalfFloats));
      store_bytes(to + half * DPWA_VECTOR_BYTES, __builtin_convertvector(narrow, Doubles));
    }
  }
};

}  // namespace
}  // namespace dpwa::kernels
