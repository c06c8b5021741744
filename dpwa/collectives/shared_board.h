#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::collectives {

// What a member tells the others of its host, in the first page of the memory that it lends them:
// written by that member alone, read by all. Its values may be any bytes, because another process
// writes them.
struct SharedBoard {
  // Words of their own cache lines: the others look at the first one all the time.
  struct alignas(64) Line {
    std::atomic<std::uint64_t> value{0};
  };

  Line phase;     // how many phases this member has reached: SharedGroup
  Line released;  // of rank 0: what all have reached
  // Changes with each of the words of this page; a futex.
  alignas(64) std::atomic<std::uint32_t> bell{0};
  // Not 0: this member sleeps until a word of another one changes.
  alignas(64) std::atomic<std::uint32_t> sleeps{0};
  // 0; else the group is broken: 1: nobody knows by whom, 2 + r: by rank r.
  std::atomic<std::uint32_t> broken{0};

  // Where the data of an operation lies in the memory of this member.
  struct Place {
    std::atomic<std::uint64_t> offset{0};
  };
  static constexpr std::uint64_t no_place = ~std::uint64_t{0};
  static constexpr std::size_t places = 4;  // more than operations can overlap
  alignas(64) std::array<Place, places> place;
};

static_assert(sizeof(SharedBoard) <= page_bytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace dpwa::collectives
