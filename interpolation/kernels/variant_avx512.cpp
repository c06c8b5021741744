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

inline Floats load_int8(const std::byte* from) {
  const __m512i words = _mm512_maskz_cvtepi8_epi32(0xffff, load_bytes<__m128i>(from));
  return (Floats)_mm512_maskz_cvtepi32_ps(0xffff, words);
}

inline void store_int8(std::byte* low, std::byte* high, const Floats (&lows)[1],
                       const Floats (&highs)[1]) {
  const __m512i low_words = _mm512_maskz_cvtps_epi32(0xffff, (__m512)lows[0]);
  const __m512i high_words = _mm512_maskz_cvtps_epi32(0xffff, (__m512)highs[0]);
  store_bytes(low, _mm512_maskz_cvtepi32_epi8(0xffff, low_words));
  store_bytes(high, _mm512_maskz_cvtepi32_epi8(0xffff, high_words));
}

inline Largest largest_of(Words low, Words high) {
  const auto a = (__m512i)low, b = (__m512i)high;
  // Lanes alternate between the two from here on.
  const __m512i both = _mm512_maskz_max_epu32(0xffff, _mm512_maskz_unpacklo_epi32(0xffff, a, b),
                                              _mm512_maskz_unpackhi_epi32(0xffff, a, b));
  const __m256i eight = _mm256_max_epu32(_mm512_maskz_extracti64x4_epi64(0xf, both, 0),
                                         _mm512_maskz_extracti64x4_epi64(0xf, both, 1));
  __m128i four = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
  const auto pair = (std::uint64_t)_mm_cvtsi128_si64(four);
  return {(std::uint32_t)pair, (std::uint32_t)(pair >> 32)};
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
