#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace dpwa {

// The checksum of the values of all tensors, which are dense.
std::uint32_t checksum_of(const std::vector<at::Tensor>& tensors);

// The checksum of at most 4 KiB of a tensor, evenly distributed, or of the values of a sparse one:
// cheap enough for every gradient in every step. 0 where reading it would wait for a device.
std::uint32_t checksum_of_sample(const at::Tensor& tensor);

}  // namespace dpwa
