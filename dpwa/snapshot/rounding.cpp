#include "dpwa/snapshot/rounding.h"

#include <array>
#include <cmath>
#include <cstring>

#include "interpolation/kernels/dtype.h"
#include "interpolation/kernels/portions.h"

namespace dpwa {
namespace {

// From 1 to the next larger value.
double step_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float64:
      return 0x1p-52;
    default:
      return 0x1p-23;
  }
}

// Several sums at once, which the compiler keeps in one register.
template <class Value>
double sum_of_squares(std::span<const std::byte> values) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  const std::size_t count = values.size() / sizeof(Value);
  for (std::size_t i = 0; i < count; ++i) {
    Value value;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    sums[i % lanes] += static_cast<double>(value) * static_cast<double>(value);
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

double sum_of_squares(DType dtype, std::span<const std::byte> values) {
  if (dtype == DType::float64) return sum_of_squares<double>(values);
  const std::size_t each = size_of(dtype);
  kernels::FloatPortion portion;
  double sum = 0;
  kernels::for_each_portion(values.size() / each, [&](std::size_t from, std::size_t count) {
    sum += sum_of_squares<float>(portion.widen(dtype, values.data() + from * each, count));
  });
  return sum;
}

}  // namespace

double rounding_distance(const Manifest& manifest, std::span<const std::byte> snapshot,
                         ByteRange range) {
  double squares = 0;
  for (const Region& region : manifest.regions()) {
    const ByteRange piece = overlap(region.range(), range);
    if (region.rule != BlendRule::interpolate || piece.length == 0) continue;
    const double step = step_of(region.dtype);
    squares +=
        step * step * sum_of_squares(region.dtype, snapshot.subspan(piece.offset, piece.length));
  }
  return std::isfinite(squares) ? std::sqrt(squares) : 0;
}

}  // namespace dpwa
