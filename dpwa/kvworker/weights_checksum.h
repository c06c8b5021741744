#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dpwa {

// A checksum that travels in a weighted mean over members: the mean is that of one member if all
// have the same. Each byte is a number in [0, 1).
inline constexpr std::size_t checksum_parts = 4;
std::array<float, checksum_parts> parts_of(std::uint32_t checksum);

// Whether the mean, in which the own parts count, is one of equal checksums. If not all are equal,
// some member finds it, the one whose parts are farthest from the mean. Pure.
bool is_mean_of_equals(std::span<const float, checksum_parts> mean, std::uint32_t own);

}  // namespace dpwa
