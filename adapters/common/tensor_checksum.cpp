#include "adapters/common/tensor_checksum.h"

#include <cstddef>
#include <span>

#include "adapters/common/tensor_bytes.h"
#include "dpwa/base/checksum.h"

namespace dpwa {
namespace {

constexpr std::size_t piece_bytes = 64;
constexpr std::size_t max_pieces = 64;

}  // namespace

std::uint32_t checksum_of(const std::vector<at::Tensor>& tensors) {
  Crc32c sum;
  for (const at::Tensor& tensor : tensors) sum.update(const_bytes_of(tensor.cpu()));
  return sum.value();
}

std::uint32_t checksum_of_sample(const at::Tensor& tensor) {
  if (tensor.layout() == at::kSparse) return checksum_of_sample(tensor._values());
  if (!tensor.is_cpu() || !tensor.is_non_overlapping_and_dense()) return 0;
  const std::span<const std::byte> all = const_bytes_of(tensor);
  if (all.size() <= max_pieces * piece_bytes) return crc32c(all);
  Crc32c sum;
  for (std::size_t i = 0; i < max_pieces; ++i)
    sum.update(all.subspan((all.size() - piece_bytes) * i / (max_pieces - 1), piece_bytes));
  return sum.value();
}

}  // namespace dpwa
