#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "interpolation/kernels/dtype.h"
#include "interpolation/kernels/variants.h"

// The passes one element at a time in plain arithmetic, to hold the vector kernels against. fp16
// and bf16 are decoded by their definition and rounded by scaling to a whole number of units in the
// last place: nothing is shared with the kernels.

namespace dpwa::test {

inline constexpr DType kFloatingTypes[] = {DType::float32, DType::float64, DType::float16,
                                           DType::bfloat16};

using Bytes = std::vector<std::byte>;

double decode(DType dtype, const std::byte* element);

// What an element of the dtype holds after `value` was stored in it, rounded to nearest even.
double rounded(DType dtype, double value);

double reference_difference(DType dtype, double peer, double own);
double reference_delta(DType dtype, double x, double difference, double factor);
double reference_lerp(DType dtype, double x, double peer, double factor);

// Equal and of the same sign, or both NaN.
bool same(double a, double b);

// `count` elements, small, large, subnormal and of either sign, all finite; the same for the same
// seed.
Bytes random_elements(DType dtype, std::size_t count, std::uint64_t seed);

void append_bytes(Bytes& bytes, const void* from, std::size_t size);

// Appends one fp32, fp64 or 16-bit pattern.
template <class Value>
void append(Bytes& bytes, Value value) {
  append_bytes(bytes, &value, sizeof value);
}

// `bytes` at `offset` bytes past an aligned address, with the bytes around them watched.
class Placed {
 public:
  Placed(std::span<const std::byte> bytes, std::size_t offset);
  std::byte* data() { return storage_.data() + begin_; }
  Bytes bytes() const;
  bool surroundings_untouched() const;

 private:
  Bytes storage_;
  std::size_t begin_;
  std::size_t size_;
};

const kernels::FloatingKernels& passes_of(const kernels::Variant& variant, DType dtype);

}  // namespace dpwa::test
