#include "bench/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "dpwa/config/text.h"

namespace dpwa::bench {
namespace {

std::string with_unit(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g %s", value, unit);
  return text;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto bytes = config::parse_size_bytes(text);
  if (!bytes || *bytes <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  double scale = 1;
  if (!text.empty()) {
    const char unit = text.back();
    if (unit == 'k' || unit == 'K') scale = 1e3;
    if (unit == 'm' || unit == 'M') scale = 1e6;
    if (unit == 'g' || unit == 'G') scale = 1e9;
    if (scale > 1) text.remove_suffix(1);
  }
  const auto number = config::parse_number(text);
  if (!number) return std::nullopt;
  const double value = *number * scale;
  if (value < 1 || value >= 0x1p53 || value != std::floor(value)) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::string size_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return with_unit(value / 1e9, "GB");
  if (bytes >= 1'000'000) return with_unit(value / 1e6, "MB");
  if (bytes >= 1'000) return with_unit(value / 1e3, "KB");
  return with_unit(value, "B");
}

std::string time_text(double microseconds) {
  if (microseconds >= 1e6) return with_unit(microseconds / 1e6, "s");
  if (microseconds >= 1e3) return with_unit(microseconds / 1e3, "ms");
  return with_unit(microseconds, "us");
}

std::string number_text(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string rate_text(double gb_per_s) {
  constexpr double smallest = 0.1;
  return gb_per_s < smallest ? number_text(1000 * gb_per_s, 2) + " MB/s"
                             : number_text(gb_per_s, 2) + " GB/s";
}

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
