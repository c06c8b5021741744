#pragma once

#include <algorithm>
#include <cstdint>

#include "dpwa/base/invariant.h"

namespace dpwa {

// Items of a sequence: `count` of them, `from` on.
struct ItemRange {
  std::uint64_t from = 0;
  std::uint64_t count = 0;

  std::uint64_t end() const { return from + count; }
};

// Part `index` of `total` items cut into `parts` parts: sizes differ by at most one, the first
// total mod parts parts have one more. parts > 0.
inline ItemRange shard(std::uint64_t total, std::uint64_t parts, std::uint64_t index) {
  DPWA_INVARIANT(index < parts, "a part of so many", index, parts);
  const std::uint64_t size = total / parts;
  const std::uint64_t larger = total % parts;
  return {index * size + std::min(index, larger), size + (index < larger ? 1 : 0)};
}

}  // namespace dpwa
