#pragma once

#include <cstdint>
#include <optional>

namespace dpwa {

// The incarnation of a process is a number that orders the processes of one name. Its first guess
// is the time of the start in microseconds, and no more than that: the clock of a machine may have
// been set back. A process that learns of a higher number for its name, of a process that no longer
// answers, takes a number above that one.

// Above all that clocks give until the year 2255, and exact as a double. Larger ones are ignored.
inline constexpr std::uint64_t most_incarnation = std::uint64_t{1} << 53;

// The number that the process `own` takes when `known` is the highest one. Two processes that take
// one at once get different ones, and between it and `known` there is room for the epochs of a
// store, whose numbers are below those of later servers. None: `known` is absurd.
constexpr std::optional<std::uint64_t> incarnation_after(std::uint64_t known, std::uint64_t own) {
  constexpr std::uint64_t room = std::uint64_t{1} << 32;
  if (known > most_incarnation - 2 * room) return std::nullopt;
  return known + room + own % room;
}

}  // namespace dpwa
