#define DPWA_VECTOR_BYTES 16
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "interpolation/kernels/vector_types.h"

namespace dpwa::kernels {
namespace {

// fp16 <-> fp32 in integer vector arithmetic, as not every target converts them. Method: Fabian
// Giesen, "Half to float done quic" and "float_to_half_fast3_rtne".

inline Floats load_half(const std::byte* from) {
  const Words half = __builtin_convertvector(load_bytes<HalfWords>(from), Words);
  const Words sign = (half & 0x8000u) << 16;
  const Words exponent = half & 0x7c00u;
  const Words rebased = ((half & 0x7fffu) << 13) + (112u << 23);
  const Words not_finite = rebased + (112u << 23);
  // A subnormal gets the exponent of the smallest normal value; the subtraction removes it again.
  const Floats subnormal = (Floats)(rebased + (1u << 23)) - (Floats)(Words{} + (113u << 23));
  const Words finite = select(exponent == 0u, (Words)subnormal, rebased);
  return (Floats)(select(exponent == 0x7c00u, not_finite, finite) | sign);
}

inline void store_half(std::byte* to, Floats value) {
  const Words bits = (Words)value;
  const Words sign = (bits >> 16) & 0x8000u;
  const Words magnitude = bits & 0x7fffffffu;
  const SignedWords order = (SignedWords)magnitude;  // compares as the value does

  const Words odd = (magnitude >> 13) & 1u;
  const Words normal = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  // Adding 1/2 lets the floating-point unit round to a multiple of 2^-24, the subnormal step.
  const Words one_half = Words{} + (126u << 23);
  const Words subnormal = (Words)((Floats)magnitude + (Floats)one_half) - one_half;
  const Words quiet_nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);

  Words half = select(order < (113 << 23), subnormal, normal);
  half = select(order >= (143 << 23), Words{} + 0x7c00u, half);
  half = select(order > 0x7f800000, quiet_nan, half);
  store_bytes(to, __builtin_convertvector(half | sign, HalfWords));
}

// Plain stores where the target has no others.
inline void stream_bytes(std::byte* to, Words words) {
#ifdef __SSE2__
  _mm_stream_si128((__m128i*)to, (__m128i)words);
#else
  store_bytes(to, words);
#endif
}

inline void stream_fence() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

inline Floats square_root(Floats value) {
#ifdef __SSE2__
  return (Floats)_mm_sqrt_ps((__m128)value);
#else
  for (int lane = 0; lane < DPWA_VECTOR_BYTES / 4; ++lane)
    value[lane] = __builtin_sqrtf(value[lane]);
  return value;
#endif
}

inline Doubles square_root(Doubles value) {
#ifdef __SSE2__
  return (Doubles)_mm_sqrt_pd((__m128d)value);
#else
  for (int lane = 0; lane < DPWA_VECTOR_BYTES / 8; ++lane)
    value[lane] = __builtin_sqrt(value[lane]);
  return value;
#endif
}

}  // namespace
}  // namespace dpwa::kernels

#include "interpolation/kernels/int8_portable.h"
#include "interpolation/kernels/vector_passes.h"

namespace dpwa::kernels {

constinit const KernelTable generic_kernels = kernel_table();

}  // namespace dpwa::kernels
