#include "adapters/collective/engine/group_tensors.h"

#include <numeric>
#include <stdexcept>

#include "adapters/common/element_types.h"

namespace dpwa::collective {

void refuse(const std::string& what) {
  throw std::invalid_argument("engine dpwa: " + what);
}

DType number_type_of(const at::Tensor& tensor) {
  if (const auto type = to_dtype(tensor.scalar_type())) return *type;
  refuse(std::string("tensors of type ") + c10::toString(tensor.scalar_type()) +
         " are not reduced");
}

collectives::Reduction group_reduction_of(const c10d::ReduceOp& operation) {
  switch (operation) {
    case c10d::ReduceOp::SUM:
      return collectives::Reduction::sum;
    case c10d::ReduceOp::MIN:
      return collectives::Reduction::min;
    case c10d::ReduceOp::MAX:
      return collectives::Reduction::max;
    default:
      refuse("accepted reductions: sum, min, max");
  }
}

void require_contiguous(const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_contiguous()) refuse("tensors must be contiguous");
  }
}

const at::Tensor& only_one(const Tensors& tensors) {
  if (tensors.size() != 1) refuse("one tensor is needed");
  require_contiguous(tensors);
  return tensors.front();
}

std::vector<std::size_t> bytes_by_rank(const at::Tensor& tensor,
                                       const std::vector<std::int64_t>& rows, int size) {
  const auto members = static_cast<std::size_t>(size);
  const std::int64_t all = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (rows.empty()) {
    if (all % size != 0) refuse("the rows do not divide by the number of ranks");
    return std::vector<std::size_t>(members, tensor.nbytes() / members);
  }
  if (rows.size() != members || std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) != all)
    refuse("the numbers of rows do not fit");
  std::vector<std::size_t> bytes;
  for (const std::int64_t count : rows)
    bytes.push_back(all == 0 ? 0
                             : tensor.nbytes() / static_cast<std::size_t>(all) *
                                   static_cast<std::size_t>(count));
  return bytes;
}

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.is_cpu() ? tensor : tensor.cpu();
}

void give_back(const at::Tensor& host, const at::Tensor& tensor) {
  if (!host.is_same(tensor)) tensor.copy_(host);
}

}  // namespace dpwa::collective
