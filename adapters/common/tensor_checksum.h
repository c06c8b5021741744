#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace dpwa {

// The checksum of the values of all tensors, which are dense.
std::uint32_t checksum_of(const std::vector<at::Tensor>& tensors);

}  // namespace dpwa
