#pragma once

// Two bits a value: the codes of 16 fp32 values in a word, value i in bits 2i and 2i + 1: 0 is 0, 2
// is -threshold, 3 is +threshold (the codes of MXNet). Only for the variant sources (see
// variant.h).

#include "interpolation/kernels/update_terms.h"
#include "interpolation/kernels/vector_types.h"

namespace dpwa::kernels {
namespace {

inline constexpr std::size_t kCodes = 16;                     // in a word
inline constexpr std::size_t kLanes = DPWA_VECTOR_BYTES / 4;  // of fp32

inline Words code_shifts() {
  std::uint32_t shifts[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) shifts[lane] = 2 * lane;
  Words result;
  __builtin_memcpy(&result, shifts, sizeof result);
  return result;
}

// One word of codes for 16 values; `residual` becomes residual + values - what the codes stand for.
inline std::uint32_t take_codes(std::byte* residual, const std::byte* values, Floats threshold,
                                Words shifts) {
  Words word = {};
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kCodes / kLanes; ++i) {
    const std::size_t at = i * DPWA_VECTOR_BYTES;
    const Floats value = load_bytes<Floats>(residual + at) + load_bytes<Floats>(values + at);
    const SignedWords above = value >= threshold;
    const SignedWords below = value <= -threshold;
    const Words sent = ((Words)above & (Words)threshold) | ((Words)below & (Words)-threshold);
    store_bytes(residual + at, value - (Floats)sent);
    const Words codes = ((Words)above & 3u) | ((Words)below & 2u);
    word |= codes << (shifts + (std::uint32_t)(2 * i * kLanes));
  }
  std::uint32_t lanes[kLanes];
  __builtin_memcpy(lanes, &word, sizeof word);
  std::uint32_t result = 0;
  for (const std::uint32_t lane : lanes) result |= lane;
  return result;
}

// values = what the codes of one word stand for.
inline void give_values(std::byte* values, std::uint32_t word, Floats threshold, Words shifts) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kCodes / kLanes; ++i) {
    const Words codes = (Words{} + word) >> (shifts + (std::uint32_t)(2 * i * kLanes));
    const SignedWords sent = (codes & 2u) != 0u;
    const Words sign = (~codes & 1u) << 31;
    store_bytes(values + i * DPWA_VECTOR_BYTES, (Words)sent & ((Words)threshold | sign));
  }
}

// `codes` has a word for every 16 values; threshold > 0.
inline void take_codes_pass(std::byte* codes, std::byte* residual, const std::byte* values,
                            std::size_t count, float threshold) {
  constexpr std::size_t kBytes = 4 * kCodes;
  const Words shifts = code_shifts();
  const Floats all = Floats{} + threshold;
  for (; count >= kCodes; count -= kCodes) {
    const std::uint32_t word = take_codes(residual, values, all, shifts);
    __builtin_memcpy(codes, &word, sizeof word);
    codes += sizeof word;
    residual += kBytes;
    values += kBytes;
  }
  if (count == 0) return;
  std::byte residual_rest[kBytes] = {};
  std::byte values_rest[kBytes] = {};
  __builtin_memcpy(residual_rest, residual, 4 * count);
  __builtin_memcpy(values_rest, values, 4 * count);
  const std::uint32_t word = take_codes(residual_rest, values_rest, all, shifts);
  __builtin_memcpy(codes, &word, sizeof word);
  __builtin_memcpy(residual, residual_rest, 4 * count);
}

inline void give_values_pass(std::byte* values, const std::byte* codes, std::size_t count,
                             float threshold) {
  constexpr std::size_t kBytes = 4 * kCodes;
  const Words shifts = code_shifts();
  const Floats all = Floats{} + threshold;
  for (std::size_t left = count; left > 0;) {
    std::uint32_t word;
    __builtin_memcpy(&word, codes, sizeof word);
    codes += sizeof word;
    if (left >= kCodes) {
      give_values(values, word, all, shifts);
      values += kBytes;
      left -= kCodes;
    } else {
      std::byte rest[kBytes];
      give_values(rest, word, all, shifts);
      __builtin_memcpy(values, rest, 4 * left);
      left = 0;
    }
  }
}

}  // namespace
}  // namespace dpwa::kernels
