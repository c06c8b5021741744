#include "dpwa/collectives/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "interpolation/kernels/updates.h"

namespace dpwa::collectives {
namespace {

using Inputs = std::span<const std::byte* const>;

// Of one step, so that what it works on stays in the cache of a core.
constexpr std::size_t block_bytes = std::size_t{8} << 10;

template <class Number>
struct Sum {
  Number operator()(Number a, Number b) const {
    if constexpr (std::is_integral_v<Number>) {
      using Bits = std::make_unsigned_t<Number>;
      return static_cast<Number>(static_cast<Bits>(a) + static_cast<Bits>(b));
    } else {
      return a + b;
    }
  }
};

template <class Number>
bool is_nan(Number number) {
  if constexpr (std::is_floating_point_v<Number>) return number != number;
  return false;
}

template <class Number>
struct Min {
  Number operator()(Number a, Number b) const { return b < a || is_nan(b) ? b : a; }
};

template <class Number>
struct Max {
  Number operator()(Number a, Number b) const { return a < b || is_nan(b) ? b : a; }
};

// Numbers in memory have any alignment, and blocks of an input may be the result's.
template <class Number, class Combine>
void combine_inputs(Inputs inputs, std::byte* result, std::size_t count, Combine combine) {
  constexpr std::size_t block = block_bytes / sizeof(Number);
  std::array<Number, block> total;
  std::array<Number, block> next;
  for (std::size_t from = 0; from < count; from += block) {
    const std::size_t length = std::min(block, count - from);
    std::memcpy(total.data(), inputs[0] + from * sizeof(Number), length * sizeof(Number));
    for (std::size_t input = 1; input < inputs.size(); ++input) {
      std::memcpy(next.data(), inputs[input] + from * sizeof(Number), length * sizeof(Number));
      for (std::size_t i = 0; i < length; ++i) total[i] = combine(total[i], next[i]);
    }
    std::memcpy(result + from * sizeof(Number), total.data(), length * sizeof(Number));
  }
}

template <class Number>
void reduce_numbers(Reduction reduction, Inputs inputs, std::byte* result, std::size_t count) {
  switch (reduction) {
    case Reduction::sum:
      return combine_inputs<Number>(inputs, result, count, Sum<Number>());
    case Reduction::min:
      return combine_inputs<Number>(inputs, result, count, Min<Number>());
    case Reduction::max:
      return combine_inputs<Number>(inputs, result, count, Max<Number>());
  }
}

// Each 0 or 1: or is their maximum, and their minimum.
void reduce_booleans(Reduction reduction, Inputs inputs, std::byte* result, std::size_t count) {
  const bool any = reduction == Reduction::sum || reduction == Reduction::max;
  reduce_numbers<std::uint8_t>(any ? Reduction::max : Reduction::min, inputs, result, count);
}

// The numbers of 16 bits of a block as float32, combined, and rounded once.
void reduce_halves(DType type, Reduction reduction, Inputs inputs, std::byte* result,
                   std::size_t count) {
  constexpr std::size_t block = block_bytes / sizeof(float);
  constexpr double one = 1;
  alignas(64) std::array<std::byte, block_bytes> total;
  alignas(64) std::array<std::byte, block_bytes> next;
  std::vector<const std::byte*> at(inputs.begin(), inputs.end());
  const std::vector<double> ones(inputs.size(), one);
  for (std::size_t from = 0; from < count; from += block) {
    const std::size_t length = std::min(block, count - from);
    const std::span sum(total.data(), length * sizeof(float));
    if (reduction == Reduction::sum) {
      kernels::sum(type, sum, at, ones);
    } else {
      kernels::sum(type, sum, {at.data(), 1}, {&one, 1});
      for (std::size_t input = 1; input < at.size(); ++input) {
        kernels::sum(type, {next.data(), sum.size()}, {&at[input], 1}, {&one, 1});
        const std::array<const std::byte*, 2> both{total.data(), next.data()};
        reduce_numbers<float>(reduction, both, total.data(), length);
      }
    }
    kernels::update(kernels::Update::replace, type, {result + from * 2, length * 2}, sum, {}, {});
    for (const std::byte*& input : at) input += length * 2;
  }
}

}  // namespace

void reduce(DType type, Reduction reduction, Inputs inputs, std::byte* result, std::size_t count) {
  if (inputs.empty() || count == 0) return;
  const bool adds = reduction == Reduction::sum;
  switch (type) {
    case DType::float32:
    case DType::float64:
      if (adds) {
        const std::vector<double> ones(inputs.size(), 1);
        kernels::sum(type, {result, count * size_of(type)}, inputs, ones);
        return;
      }
      if (type == DType::float32) return reduce_numbers<float>(reduction, inputs, result, count);
      return reduce_numbers<double>(reduction, inputs, result, count);
    case DType::float16:
    case DType::bfloat16:
      return reduce_halves(type, reduction, inputs, result, count);
    case DType::int64:
      return reduce_numbers<std::int64_t>(reduction, inputs, result, count);
    case DType::int32:
      return reduce_numbers<std::int32_t>(reduction, inputs, result, count);
    case DType::int16:
      return reduce_numbers<std::int16_t>(reduction, inputs, result, count);
    case DType::int8:
      return reduce_numbers<std::int8_t>(reduction, inputs, result, count);
    case DType::uint8:
      return reduce_numbers<std::uint8_t>(reduction, inputs, result, count);
    case DType::boolean:
      return reduce_booleans(reduction, inputs, result, count);
  }
}

}  // namespace dpwa::collectives
