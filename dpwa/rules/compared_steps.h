#pragma once

#include <bit>
#include <cstdint>

namespace dpwa {

// Whether members that must have equal weights compare them at this step, counted from 0: what
// differs from the start on is found at once, and what differs later in a hundred steps.
constexpr bool compares_weights_at(std::uint64_t step) {
  constexpr std::uint64_t usual = 100;
  return step % usual == 0 || (step < usual && std::has_single_bit(step));
}

}  // namespace dpwa
