#include "adapters/common/tensor_checksum.h"

#include <cstddef>
#include <span>

#include "dpwa/base/checksum.h"

namespace dpwa {
namespace {

constexpr std::size_t piece_bytes = 64;
constexpr std::size_t max_pieces = 64;

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace

std::uint32_t checksum_of(const std::vector<at::Tensor>& tensors) {
  Crc32c sum;
  for (const at::Tensor& tensor : tensors) sum.update(bytes_of(tensor.cpu()));
  return sum.value();
}

std::uint32_t checksum_of_sample(const at::Tensor& tensor) {
  if (tensor.layout() == at::kSparse) return checksum_of_sample(tensor._values());
  if (!tensor.is_cpu() || !tensor.is_non_overlapping_and_dense()) return 0;
  const std::span<const std::byte> all = bytes_of(tensor);
  if (all.size() <= max_pieces * piece_bytes) return crc32c(all);
  Crc32c sum;
  for (std::size_t i = 0; i < max_pieces; ++i)
    sum.update(all.subspan((all.size() - piece_bytes) * i / (max_pieces - 1), piece_bytes));
  return sum.value();
}

}  // namespace dpwa
