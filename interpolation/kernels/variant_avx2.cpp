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

inline Floats load_int8(const std::byte* from) {
  return (Floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)from)));
}

inline void store_int8(std::byte* low, std::byte* high, const Floats (&lows)[2],
                       const Floats (&highs)[2]) {
  const __m256i low_words =
      _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)lows[0]), _mm256_cvtps_epi32((__m256)lows[1]));
  const __m256i high_words = _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)highs[0]),
                                                _mm256_cvtps_epi32((__m256)highs[1]));
  // Packing works within halves of a register: in fours, this is 0 2 4 6 1 3 5 7.
  const __m256i mixed = _mm256_packs_epi16(low_words, high_words);
  const __m256i bytes =
      _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  store_bytes(low, _mm256_castsi256_si128(bytes));
  store_bytes(high, _mm256_extracti128_si256(bytes, 1));
}

inline Largest largest_of(Words low, Words high) {
  const auto a = (__m256i)low, b = (__m256i)high;
  // Lanes alternate between the two from here on.
  const __m256i both = _mm256_max_epu32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  __m128i four = _mm_max_epu32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
  const auto pair = (std::uint64_t)_mm_cvtsi128_si64(four);
  return {(std::uint32_t)pair, (std::uint32_t)(pair >> 32)};
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
