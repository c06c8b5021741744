#define DPWA_VECTOR_BYTES 32
#include <immintrin.h>

#include "interpolation/kernels/vector_types.h"

namespace dpwa::kernels {
namespace {

inline Floats load_half(const std::byte* from) {
  return (Floats)_mm256_cvtph_ps(load_bytes<__m128i>(from));
}

inline void store_half(std::byte* to, Floats value) {
  store_bytes(to, _mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT));
}

inline void stream_bytes(std::byte* to, Words words) {
  _mm256_stream_si256((__m256i*)to, (__m256i)words);
}

inline void stream_fence() {
  _mm_sfence();
}

inline Floats square_root(Floats value) {
  return (Floats)_mm256_sqrt_ps((__m256)value);
}

inline Doubles square_root(Doubles value) {
  return (Doubles)_mm256_sqrt_pd((__m256d)value);
}

}  // namespace
}  // namespace dpwa::kernels

#include "interpolation/kernels/vector_passes.h"

namespace dpwa::kernels {

constinit const KernelTable avx2_kernels = kernel_table();

}  // namespace dpwa::kernels
