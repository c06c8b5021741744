#pragma once

#include <cstddef>
#include <span>

#include "interpolation/kernels/dtype.h"
#include "interpolation/kernels/update_terms.h"

namespace dpwa::kernels {

// Vector passes that add up gradients and apply the sum to values, under the rules of kernels.h:
// any alignment, no overlap, the same bits from every variant, std::invalid_argument for a dtype
// that is not floating-point and for lengths that do not fit. Sums and states have the elements of
// the computation: fp64 for fp64, else fp32.

// sum = weights[0] * parts[0] + weights[1] * parts[1] + ..., added in this order, and onto what
// `sum` holds when `onto`. The parts are of `dtype`. Returns whether every element of the sum is
// finite, which says the same of all parts, or a sum has overflowed.
bool sum(DType dtype, std::span<std::byte> sum, std::span<const std::byte* const> parts,
         std::span<const double> weights, bool onto = false);

// One step for values of `dtype`, each rounded to nearest even once; `state` as state_count() says.
void update(Update update, DType dtype, std::span<std::byte> values, std::span<const std::byte> sum,
            std::span<std::byte* const> state, const UpdateTerms& terms);

// The bytes of the two-bit codes of so many values: a little-endian word for every 16 of them.
constexpr std::size_t two_bit_bytes(std::size_t count) {
  return (count + 15) / 16 * 4;
}

// Compresses fp32 values: residual += values; where it is now >= threshold the code is 3 and the
// residual loses the threshold, where it is <= -threshold the code is 2 and it gains it, else the
// code is 0. Value i is in bits 2i and 2i + 1 of its word; unused bits are 0. A threshold that is
// not positive and finite is a std::invalid_argument.
void take_two_bit_codes(std::span<std::byte> codes, std::span<std::byte> residual,
                        std::span<const std::byte> values, float threshold);
// The fp32 values that the codes stand for; code 1 is 0 as well.
void give_two_bit_values(std::span<std::byte> values, std::span<const std::byte> codes,
                         float threshold);

}  // namespace dpwa::kernels
