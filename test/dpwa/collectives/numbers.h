#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dpwa/collectives/group.h"

namespace dpwa::test {

inline constexpr DType all_types[] = {
    DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int64,
    DType::int32,   DType::int16,   DType::int8,    DType::uint8,    DType::boolean};
inline constexpr collectives::Reduction all_reductions[] = {
    collectives::Reduction::sum, collectives::Reduction::min, collectives::Reduction::max};

// Small whole numbers, 0 to 2, which every type holds exactly, and so their sums over nine members:
// the order in which they are combined is no matter.
std::vector<int> small_numbers(std::size_t count, int rank);
std::vector<std::byte> as_type(DType type, const std::vector<int>& numbers);

// Of small_numbers() of all ranks, by a plain loop.
std::vector<int> combined(collectives::Reduction reduction, DType type, std::size_t count,
                          int size);

// Bits that differ between ranks and seeds: float32 of any size.
std::vector<std::byte> any_floats(std::size_t count, int rank);

}  // namespace dpwa::test
