#pragma once

// Only for the variant sources, which define DPWA_VECTOR_BYTES first (see variant.h).

#include <cstddef>
#include <cstdint>

namespace dpwa::kernels {
namespace {

// GCC and Clang vector extensions: one source for every instruction set, lowered to what the target
// has.
typedef float Floats __attribute__((vector_size(DPWA_VECTOR_BYTES)));
typedef double Doubles __attribute__((vector_size(DPWA_VECTOR_BYTES)));
typedef std::uint32_t Words __attribute__((vector_size(DPWA_VECTOR_BYTES)));
typedef std::int32_t SignedWords __attribute__((vector_size(DPWA_VECTOR_BYTES)));
typedef std::uint16_t HalfWords __attribute__((vector_size(DPWA_VECTOR_BYTES / 2)));

// Loads and stores at any address.
template <class Vector>
inline Vector load_bytes(const std::byte* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}

template <class Vector>
inline void store_bytes(std::byte* to, Vector vector) {
  __builtin_memcpy(to, &vector, sizeof vector);
}

// The largest lane of each of two vectors, as unsigned numbers.
struct Largest {
  std::uint32_t low, high;
};

// Lanes of `yes` where `mask` is all ones, of `no` where it is zero.
inline Words select(SignedWords mask, Words yes, Words no) {
  return mask ? yes : no;
}

}  // namespace
}  // namespace dpwa::kernels
