#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "interpolation/kernels/dtype.h"
#include "interpolation/kernels/updates.h"

namespace dpwa::kernels {

// The number of elements that passes of several steps take at a time, so that the result of a step
// is in the first-level cache for the next one. A multiple of 16, so that portions end with a word
// of two-bit codes.
inline constexpr std::size_t portion_elements = 1024;

// Calls work(from, count) for every portion of `elements` elements.
template <class Work>
void for_each_portion(std::size_t elements, const Work& work) {
  for (std::size_t from = 0; from < elements; from += portion_elements)
    work(from, std::min(portion_elements, elements - from));
}

// sum += weight x part; whether every element of the sum is finite.
inline bool add_part(DType dtype, std::span<std::byte> sum, std::span<const std::byte> part,
                     double weight) {
  const std::byte* const parts[] = {part.data()};
  return kernels::sum(dtype, sum, parts, {&weight, 1}, /*onto=*/true);
}

// Room for one portion in fp32.
class FloatPortion {
 public:
  std::span<std::byte> bytes(std::size_t count) {
    return std::as_writable_bytes(std::span(values_).first(count));
  }
  float& operator[](std::size_t i) { return values_[i]; }

  // `count` elements from `from` on as fp32: a view of them if they are fp32, otherwise a copy in
  // this object. Values beyond the range of fp32 become infinite.
  std::span<const std::byte> widen(DType dtype, const std::byte* from, std::size_t count) {
    if (dtype == DType::float32) return {from, count * sizeof(float)};
    if (dtype == DType::float64) {
      for (std::size_t i = 0; i < count; ++i) {
        double value;
        std::memcpy(&value, from + i * sizeof value, sizeof value);
        values_[i] = static_cast<float>(value);
      }
    } else {
      const double weight = 1;
      sum(dtype, bytes(count), {&from, 1}, {&weight, 1});
    }
    return bytes(count);
  }

 private:
  std::array<float, portion_elements> values_{};
};

}  // namespace dpwa::kernels
