#include "test/interpolation/kernels/reference.h"

#include <boost/random/mersenne_twister.hpp>
#include <cmath>
#include <cstring>
#include <limits>

namespace dpwa::test {
namespace {

constexpr std::byte kWatched{0xa5};
constexpr std::size_t kMargin = 192;

struct Format {
  int fraction_bits;
  int least_exponent;  // of a normal value
  double overflow;     // a rounded magnitude from here on is infinite
};

Format format_of(DType dtype) {
  if (dtype == DType::float16) return {10, -14, std::ldexp(1.0, 16)};
  return {7, -126, std::ldexp(1.0, 128)};
}

double decode_small(std::uint16_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits;
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double magnitude = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, 1 - bias - fraction_bits);
  } else {
    magnitude = std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Applies `operation` in the type that the dtype is computed in.
template <class Operation>
double compute(DType dtype, Operation operation) {
  if (dtype == DType::float64) return operation(double{});
  return rounded(dtype, static_cast<double>(operation(float{})));
}

}  // namespace

double decode(DType dtype, const std::byte* element) {
  if (dtype == DType::float32) {
    float value;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  if (dtype == DType::float64) {
    double value;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, element, sizeof bits);
  return decode_small(bits, format_of(dtype).fraction_bits);
}

double rounded(DType dtype, double value) {
  if (dtype == DType::float64 || !std::isfinite(value) || value == 0) return value;
  if (dtype == DType::float32) return static_cast<float>(value);
  const Format format = format_of(dtype);
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const double unit = std::ldexp(1.0, exponent - format.fraction_bits);
  const double nearest = std::copysign(std::nearbyint(value / unit) * unit, value);
  if (std::abs(nearest) >= format.overflow) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return nearest;
}

double reference_difference(DType dtype, double peer, double own) {
  return compute(dtype, [&](auto type) {
    using T = decltype(type);
    return static_cast<T>(peer) - static_cast<T>(own);
  });
}

double reference_delta(DType dtype, double x, double difference, double factor) {
  return compute(dtype, [&](auto type) {
    using T = decltype(type);
    return static_cast<T>(x) + static_cast<T>(difference) * static_cast<T>(factor);
  });
}

double reference_lerp(DType dtype, double x, double peer, double factor) {
  return compute(dtype, [&](auto type) {
    using T = decltype(type);
    return static_cast<T>(x) * static_cast<T>(1 - factor) +
           static_cast<T>(peer) * static_cast<T>(factor);
  });
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

Bytes random_elements(DType dtype, std::size_t count, std::uint64_t seed) {
  boost::random::mt19937_64 engine(seed);
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const double significand = 1 + std::ldexp(static_cast<double>(engine() >> 11), -53);
    const int exponent = static_cast<int>(engine() % 24) - 12;
    const double value = std::ldexp(engine() % 2 ? significand : -significand, exponent);
    const bool tiny = engine() % 16 == 0;
    switch (dtype) {
      case DType::float32:
        append(bytes, tiny ? std::numeric_limits<float>::denorm_min() * static_cast<float>(value)
                           : static_cast<float>(value));
        break;
      case DType::float64:
        append(bytes, tiny ? std::numeric_limits<double>::denorm_min() * value : value);
        break;
      case DType::float16: {  // any magnitude below 2^15, so that no difference overflows
        auto bits = static_cast<std::uint16_t>(engine());
        if ((bits & 0x7800) == 0x7800) bits = static_cast<std::uint16_t>(bits & ~0x4000);
        append(bytes, bits);
        break;
      }
      default: {  // bfloat16: 0.5 to 2, or subnormal
        auto bits = static_cast<std::uint16_t>(engine());
        bits = static_cast<std::uint16_t>(tiny ? bits & 0x807f : (bits & 0x80ff) | 0x3f00);
        append(bytes, bits);
      }
    }
  }
  return bytes;
}

void append_bytes(Bytes& bytes, const void* from, std::size_t size) {
  bytes.resize(bytes.size() + size);
  std::memcpy(bytes.data() + bytes.size() - size, from, size);
}

Placed::Placed(std::span<const std::byte> bytes, std::size_t offset) : size_(bytes.size()) {
  storage_.assign(size_ + 2 * kMargin + offset, kWatched);
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
  begin_ = (64 - address % 64) % 64 + 64 + offset;
  if (size_ > 0) std::memcpy(data(), bytes.data(), size_);
}

Bytes Placed::bytes() const {
  return Bytes(storage_.begin() + static_cast<std::ptrdiff_t>(begin_),
               storage_.begin() + static_cast<std::ptrdiff_t>(begin_ + size_));
}

bool Placed::surroundings_untouched() const {
  for (std::size_t i = 0; i < storage_.size(); ++i) {
    if ((i < begin_ || i >= begin_ + size_) && storage_[i] != kWatched) return false;
  }
  return true;
}

const kernels::FloatingKernels& passes_of(const kernels::Variant& variant, DType dtype) {
  switch (dtype) {
    case DType::float64:
      return variant.kernels->float64;
    case DType::float16:
      return variant.kernels->float16;
    case DType::bfloat16:
      return variant.kernels->bfloat16;
    default:
      return variant.kernels->float32;
  }
}

}  // namespace dpwa::test
