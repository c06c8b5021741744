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
namespace {

// The CRC32C of whole blocks of fp32, by folding: V. Gopal et al., "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009. The factors for a distance of
// `bits` are x^(bits + 32) and x^(bits - 32) modulo the polynomial, reflected.
class FoldedChecksum {
 public:
  explicit FoldedChecksum(std::uint32_t state)
      : low_(_mm512_setzero_si512()),
        high_(low_),
        next_(_mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state))) {}
  void add(Floats low, Floats high) {
    const __m512i by_1024 = _mm512_set4_epi64(0x0d3b6092, 0x6992cea2, 0x0d3b6092, 0x6992cea2);
    low_ = fold(low_, by_1024, _mm512_xor_si512((__m512i)low, next_));
    high_ = fold(high_, by_1024, (__m512i)high);
    next_ = _mm512_setzero_si512();
  }
  // With a checksum the processor looks less far ahead for memory that is not in the cache.
  static void fetch(const std::byte* own) {
    constexpr std::size_t ahead = 4096;
    __builtin_prefetch(own + ahead);
    __builtin_prefetch(own + ahead + 64);
  }
  // Of at least one block.
  std::uint32_t state() const {
    const __m512i by_512 = _mm512_set4_epi64(0x9e4addf8, 0x740eef02, 0x9e4addf8, 0x740eef02);
    std::uint64_t words[8];
    _mm512_storeu_si512(words, fold(low_, by_512, high_));
    std::uint64_t state = 0;
    for (const std::uint64_t word : words) state = _mm_crc32_u64(state, word);
    return (std::uint32_t)state;
  }

 private:
  static __m512i fold(__m512i value, __m512i by, __m512i onto) {
    constexpr int exclusive_or = 0x96;
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, by, 0x00),
                                     _mm512_clmulepi64_epi128(value, by, 0x11), onto, exclusive_or);
  }

  __m512i low_;
  __m512i high_;
  __m512i next_;  // to be added to the next block
};

}  // namespace

RawStats avx512_land_checked(std::byte* landing, const std::byte* peer, const std::byte* own,
                             std::size_t count, bool streaming, std::uint32_t& state) {
  const auto pass = streaming ? land_with<Float32, true, Copy::streaming, FoldedChecksum>
                              : land_with<Float32, true, Copy::cached, FoldedChecksum>;
  FoldedChecksum checksum(state);
  const RawStats stats = pass(checksum, landing, peer, own, count);
  const std::size_t rest = count % kBlock<Float32>;
  if (count > rest) state = checksum.state();
  for (std::size_t i = count - rest; i < count; ++i)
    state = _mm_crc32_u32(state, load_bytes<std::uint32_t>(peer + i * sizeof state));
  return stats;
}

constinit const KernelTable avx512_kernels = kernel_table();

}  // namespace dpwa::kernels
