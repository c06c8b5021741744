#include "bench/values.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace dpwa::bench {
namespace {

// `exponent`: the bits of 1/16; `free`: those of sign and mantissa.
template <class Bits>
void fill(std::span<std::byte> bytes, std::uint64_t seed, Bits exponent, Bits free) {
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u | 1;  // never 0
  const std::size_t count = bytes.size() / sizeof(Bits);
  for (std::size_t i = 0; i < count; ++i) {
    state ^= state << 13;  // Marsaglia, Xorshift RNGs (2003)
    state ^= state >> 7;
    state ^= state << 17;
    const auto value = static_cast<Bits>(exponent | (static_cast<Bits>(state) & free));
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  std::ranges::fill(bytes.subspan(count * sizeof(Bits)), std::byte{0});
}

}  // namespace

void fill_with_values(std::span<std::byte> bytes, std::uint64_t seed, DType dtype) {
  switch (dtype) {
    case DType::float32:
      return fill<std::uint32_t>(bytes, seed, 0x3D800000u, 0x807FFFFFu);
    case DType::float64:
      return fill<std::uint64_t>(bytes, seed, 0x3FB0000000000000u, 0x800FFFFFFFFFFFFFu);
    case DType::float16:
      return fill<std::uint16_t>(bytes, seed, 0x2C00u, 0x83FFu);
    case DType::bfloat16:
      return fill<std::uint16_t>(bytes, seed, 0x3D80u, 0x807Fu);
    default:
      throw std::invalid_argument("values of " + std::string(name_of(dtype)));
  }
}

}  // namespace dpwa::bench
