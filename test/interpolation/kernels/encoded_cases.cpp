#include "test/interpolation/kernels/encoded_cases.h"

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

}  // namespace dpwa::test
