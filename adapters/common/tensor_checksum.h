#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace dpwa {

// Whether members that must have equal weights compare them at this step, counted from 0: what
// differs from the start on is found at once, and what differs later in a hundred steps.
constexpr bool compares_weights_at(std::uint64_t step) {
  constexpr std::uint64_t usual = 100;
  return step % usual == 0 || (step < usual && std::has_single_bit(step));
}

// The checksum of the values of all tensors, which are dense.
std::uint32_t checksum_of(const std::vector<at::Tensor>& tensors);

// The checksum of at most 4 KiB of a tensor, evenly distributed, or of the values of a sparse one:
// cheap enough for every gradient in every step. 0 where reading it would wait for a device.
std::uint32_t checksum_of_sample(const at::Tensor& tensor);

}  // namespace dpwa
