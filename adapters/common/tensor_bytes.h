#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

namespace dpwa {

// The memory of a dense contiguous tensor in host memory.
inline std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}
inline std::span<const std::byte> const_bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace dpwa
