#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "adapters/common/tensor_bytes.h"
#include "dpwa/collectives/group.h"

// Tensors as the operations of dpwa/collectives see them: bytes in host memory.
namespace dpwa::collective {

using Tensors = std::vector<at::Tensor>;

// Each throws std::invalid_argument where a tensor or an option does not fit.
[[noreturn]] void refuse(const std::string& what);
DType number_type_of(const at::Tensor& tensor);
collectives::Reduction group_reduction_of(const c10d::ReduceOp& operation);
void require_contiguous(const Tensors& tensors);
// Of a list that holds one contiguous tensor.
const at::Tensor& only_one(const Tensors& tensors);

// Of a contiguous tensor.
inline std::span<std::byte> memory_of(const at::Tensor& tensor) {
  return dpwa::bytes_of(tensor);
}
// Bytes for or from each rank, from numbers of rows; without these: the same to each.
std::vector<std::size_t> bytes_by_rank(const at::Tensor& tensor,
                                       const std::vector<std::int64_t>& rows, int size);

// The tensor, or its copy in host memory; and the way back.
at::Tensor on_host(const at::Tensor& tensor);
void give_back(const at::Tensor& host, const at::Tensor& tensor);

}  // namespace dpwa::collective
