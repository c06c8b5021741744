#include "adapters/common/tensor_checksum.h"

#include <cstddef>
#include <span>

#include "dpwa/base/checksum.h"

namespace dpwa {
namespace {

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace

std::uint32_t checksum_of(const std::vector<at::Tensor>& tensors) {
  Crc32c sum;
  for (const at::Tensor& tensor : tensors) sum.update(bytes_of(tensor.cpu()));
  return sum.value();
}

}  // namespace dpwa
