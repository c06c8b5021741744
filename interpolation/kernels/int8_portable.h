#pragma once

// What codes.h needs of a variant for int8, where the target has no instructions of its own for it.

#include "interpolation/kernels/vector_types.h"

namespace dpwa::kernels {
namespace {

typedef std::int8_t Int8s __attribute__((vector_size(DPWA_VECTOR_BYTES / 4)));

inline Floats load_int8(const std::byte* from) {
  const auto whole = __builtin_convertvector(load_bytes<Int8s>(from), SignedWords);
  return __builtin_convertvector(whole, Floats);
}

template <std::size_t packs>
inline void store_int8(std::byte* to, const Floats (&values)[packs]) {
  // 1.5 * 2^23: what it is added to is rounded to a whole number, which lies in the lower bits of
  // the sum.
  const Floats whole = (Floats)(Words{} + 0x4b400000u);
  for (std::size_t i = 0; i < packs; ++i) {
    const auto sum = (SignedWords)(values[i] + whole);
    store_bytes(to + i * sizeof(Int8s), __builtin_convertvector(sum, Int8s));
  }
}

template <std::size_t packs>
inline void store_int8(std::byte* low, std::byte* high, const Floats (&lows)[packs],
                       const Floats (&highs)[packs]) {
  store_int8(low, lows);
  store_int8(high, highs);
}

inline Largest largest_of(Words low, Words high) {
  Largest largest{low[0], high[0]};
  for (std::size_t i = 1; i < DPWA_VECTOR_BYTES / sizeof(float); ++i) {
    if (low[i] > largest.low) largest.low = low[i];
    if (high[i] > largest.high) largest.high = high[i];
  }
  return largest;
}

}  // namespace
}  // namespace dpwa::kernels
