#define DPWA_VECTOR_BYTES 16
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "interpolation/kernels/vector_types.h"

namespace dpwa::kernels {
namespace {

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

#include "interpolation/kernels/half_software.h"
#include "interpolation/kernels/vector_passes.h"

namespace dpwa::kernels {

constinit const KernelTable generic_kernels = kernel_table();

}  // namespace dpwa::kernels
