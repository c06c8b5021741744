#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dpwa::collectives {

// Parts begin at multiples of so many numbers: of cache lines, whatever the type.
inline constexpr std::size_t part_unit = 64;

// The numbers [first, second) of `count` that the member of this rank combines for all.
inline std::pair<std::size_t, std::size_t> part_of(std::size_t count, int size, int rank) {
  const std::size_t units = (count + part_unit - 1) / part_unit;
  const auto members = static_cast<std::size_t>(size);
  const auto at = [&](std::size_t part) {
    return std::min(count, (units * part + members - 1) / members * part_unit);
  };
  return {at(static_cast<std::size_t>(rank)), at(static_cast<std::size_t>(rank) + 1)};
}

}  // namespace dpwa::collectives
