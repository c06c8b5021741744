#include "test/interpolation/kernels/encoded_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace dpwa::test {

Bytes encoded_by(const kernels::EncodedKernels& passes, Encoding encoding, const Bytes& values) {
  Bytes out(encoded_bytes(encoding.dtype, encoding.codec, values.size()));
  passes.encode(out.data(), values.data(), values.size() / size_of(encoding.dtype));
  return out;
}

void append_value(Bytes& bytes, DType dtype, double value) {
  if (dtype == DType::float64) return append(bytes, value);
  if (dtype == DType::float32) return append(bytes, static_cast<float>(value));
  const int exponent = std::isfinite(value) && value != 0 ? std::ilogb(value) : 0;
  if (dtype == DType::float16) {
    const int bits = std::isnan(value)   ? 0x7e00
                     : std::isinf(value) ? 0x7c00
                     : value == 0        ? 0
                     : exponent < -14    ? 1
                     : exponent > 15     ? 0x7bff
                                         : (exponent + 15) << 10;
    return append(bytes, static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0)));
  }
  const float single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  append(bytes, static_cast<std::uint16_t>(bits >> 16));
}

Bytes special_values(DType dtype) {
  using Double = std::numeric_limits<double>;
  using Single = std::numeric_limits<float>;
  const double values[] = {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           Double::infinity(),
                           -Double::infinity(),
                           Double::quiet_NaN(),
                           -Double::quiet_NaN(),
                           Single::denorm_min(),
                           -Single::denorm_min(),
                           Single::min(),
                           -Single::max(),
                           Single::max(),
                           0x1.fep127,
                           0x1.fdp127,
                           0x1.fc0002p127,
                           0x1.fcp127,
                           0x1.ffp127,  // halfway to overflow of bf16
                           0x1.fefffep127,
                           65504,
                           65519,  // the last that rounds down in fp16
                           65520,
                           -65536,
                           1e300,
                           -1e300,
                           Double::max(),
                           Double::denorm_min(),
                           0x1p-24,
                           0x1p-25,  // half of the smallest fp16 value: to even, 0
                           0x1.000002p-25,
                           0x1.8p-24,
                           0x1p-14,
                           127,
                           127.49,
                           127.5,
                           127.51,
                           128,
                           0x1.fcp0,
                           0x1.fc0002p0,
                           0x1p-126,
                           0x1p-119,
                           0x1p-120,
                           0x1p-133,
                           0x1p-134,
                           1 + 0x1p-11,
                           1 + 0x1.8p-10,
                           1 + 0x1p-8,
                           1 + 0x1.8p-7};
  Bytes bytes;
  for (const double value : values) {
    for (std::size_t i = 0; i < int8_block; ++i) append_value(bytes, dtype, i == 5 ? value : 0.0);
  }
  for (const double value : values) {
    if (std::isfinite(value)) append_value(bytes, dtype, value);
  }
  return bytes;
}

Landed land(const kernels::EncodedKernels& passes, Encoding encoding, const Bytes& encoded,
            const Bytes& own, bool difference) {
  Landed result{Bytes(own.size()), {}};
  const auto pass = difference ? passes.land_difference : passes.land_copy;
  result.stats =
      pass(result.bytes.data(), encoded.data(), own.data(), own.size() / size_of(encoding.dtype));
  return result;
}

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargestSingle = std::numeric_limits<float>::max();

double clamped(double value, double limit) {
  return std::isfinite(value) ? std::clamp(value, -limit, limit) : value;
}

double to_single(double value) {
  return rounded(DType::float32, clamped(value, kLargestSingle));
}

DType dtype_of(Codec codec) {
  return codec == Codec::fp16 ? DType::float16 : DType::bfloat16;
}

double largest(Codec codec) {
  return codec == Codec::fp16 ? 65504.0 : std::ldexp(255.0, 120);
}

// Rounded to the 16-bit type and held within it.
double rounded_narrow(Codec codec, double single) {
  const double nearest = rounded(dtype_of(codec), single);
  return std::isinf(nearest) && std::isfinite(single) ? std::copysign(largest(codec), single)
                                                      : nearest;
}

// The bits of a value that the 16-bit type holds exactly.
std::uint16_t pattern(Codec codec, double value) {
  const int fraction_bits = codec == Codec::fp16 ? 10 : 7;
  const int least_exponent = codec == Codec::fp16 ? -14 : -126;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const int all_ones = codec == Codec::fp16 ? 0x7c00 : 0x7f80;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | all_ones | 1);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | all_ones);
  if (value == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(value), least_exponent);
  const auto fraction =
      static_cast<int>(std::ldexp(std::abs(value), fraction_bits - exponent));  // with its top bit
  const int biased = exponent - least_exponent;  // 0 for subnormal values too
  return static_cast<std::uint16_t>(sign | ((biased << fraction_bits) + fraction));
}

// The byte E of an int8 block.
int exponent_for(const std::vector<double>& block) {
  double magnitude = 0;
  for (const double value : block) {
    if (!std::isfinite(value)) return 255;
    magnitude = std::max(magnitude, std::abs(value));
  }
  int exponent = 7;
  while (exponent < 254 && std::ldexp(127.0, exponent - 133) < magnitude) ++exponent;
  return exponent;
}

double unit_of(int exponent) {
  return exponent == 255 ? kNan : std::ldexp(1.0, std::max(exponent, 7) - 133);
}

}  // namespace

std::vector<Decoded> decode(Codec codec, const Bytes& encoded, std::size_t count) {
  std::vector<Decoded> elements;
  for (std::size_t i = 0; i < count; ++i) {
    if (codec != Codec::int8) {
      elements.push_back({decode(dtype_of(codec), &encoded[2 * i]), 0});
      continue;
    }
    const double unit = unit_of(std::to_integer<int>(encoded[i / 16 * 17]));
    const auto whole = static_cast<signed char>(encoded[i / 16 * 17 + 1 + i % 16]);
    elements.push_back({rounded(DType::float32, whole * unit), unit});
  }
  return elements;
}

Bytes reference_encode(Encoding encoding, const Bytes& values) {
  std::vector<double> singles;
  for (std::size_t at = 0; at < values.size(); at += size_of(encoding.dtype))
    singles.push_back(to_single(decode(encoding.dtype, &values[at])));
  Bytes out;
  if (encoding.codec != Codec::int8) {
    for (const double single : singles)
      append(out, pattern(encoding.codec, rounded_narrow(encoding.codec, single)));
    return out;
  }
  for (std::size_t at = 0; at < singles.size(); at += 16) {
    const auto end = std::min(at + 16, singles.size());
    const std::vector<double> block(singles.begin() + static_cast<std::ptrdiff_t>(at),
                                    singles.begin() + static_cast<std::ptrdiff_t>(end));
    const int exponent = exponent_for(block);
    append(out, static_cast<std::uint8_t>(exponent));
    for (const double value : block) {
      const double whole = exponent == 255 ? 0 : std::nearbyint(value / unit_of(exponent));
      append(out, static_cast<std::int8_t>(std::clamp(whole, -127.0, 127.0)));
    }
  }
  return out;
}

bool same_encoded(Codec codec, const Bytes& a, const Bytes& b) {
  if (codec == Codec::int8 || a.size() != b.size()) return a == b;
  for (std::size_t at = 0; at < a.size(); at += 2) {
    if (!same(decode(dtype_of(codec), &a[at]), decode(dtype_of(codec), &b[at]))) return false;
  }
  return true;
}

double rounded_like(Encoding encoding, double own, double unit) {
  const double single = to_single(own);
  if (encoding.codec != Codec::int8) return rounded_narrow(encoding.codec, single);
  // Beyond 2^22 units, or where there is no unit: as it is.
  if (!std::isfinite(single) || std::isnan(unit) || std::abs(single / unit) >= std::ldexp(1.0, 22))
    return single;
  return std::nearbyint(single / unit) * unit + 0.0;
}

const kernels::EncodedKernels& passes_of(const kernels::Variant& variant, Encoding encoding) {
  return kernels::encoded_kernels(*variant.kernels, encoding.dtype, encoding.codec);
}

}  // namespace dpwa::test
