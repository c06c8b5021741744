#define DPWA_VECTOR_BYTES 64
#include <immintrin.h>

#include "interpolation/kernels/vector_types.h"

namespace dpwa::kernels {
namespace {

// The zeroing forms with a full mask are the plain conversions; GCC 12 warns about its own headers
// for those (GCC bug 105593).

inline Floats load_half(const std::byte* from) {
  return (Floats)_mm512_maskz_cvtph_ps(0xffff, load_bytes<__m256i>(from));
}

inline void store_half(std::byte* to, Floats value) {
  store_bytes(to, _mm512_maskz_cvtps_ph(0xffff, (__m512)value, _MM_FROUND_TO_NEAREST_INT));
}

inline void stream_bytes(std::byte* to, Words words) {
  _mm512_stream_si512((__m512i*)to, (__m512i)words);
}

inline void stream_fence() {
  _mm_sfence();
}

inline Floats square_root(Floats value) {
  return (Floats)_mm512_maskz_sqrt_ps(0xffff, (__m512)value);
}

inline Doubles square_root(Doubles value) {
  return (Doubles)_mm512_maskz_sqrt_pd(0xff, (__m512d)value);
}

}  // namespace
}  // namespace dpwa::kernels

#include "interpolation/kernels/vector_passes.h"

namespace dpwa::kernels {

constinit const KernelTable avx512_kernels = kernel_table();

}  // namespace dpwa::kernels
