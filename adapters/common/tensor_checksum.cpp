#include "adapters/common/tensor_checksum.h"

#include <cmath>

#include "adapters/common/tensor_bytes.h"
#include "dpwa/base/checksum.h"

namespace dpwa {
namespace {

constexpr std::size_t piece_bytes = 64;
constexpr std::size_t max_pieces = 64;

// A sum of weighted numbers below 1 in fp32, divided by the sum of n weights, is off by n x 2^-23
// at most: no 800 members reach this. Two bytes that differ are 1/256 apart, so one of them is off
// by 1/512 at least.
constexpr float tolerance = 1e-4F;

}  // namespace

std::uint32_t checksum_of(const std::vector<at::Tensor>& tensors) {
  Crc32c sum;
  for (const at::Tensor& tensor : tensors) sum.update(const_bytes_of(tensor.cpu()));
  return sum.value();
}

std::array<float, checksum_parts> parts_of(std::uint32_t checksum) {
  std::array<float, checksum_parts> parts{};
  for (std::size_t i = 0; i < checksum_parts; ++i)
    parts[i] = static_cast<float>(checksum >> (8 * i) & 0xff) / 256;
  return parts;
}

bool is_mean_of_equals(std::span<const float, checksum_parts> mean, std::uint32_t own) {
  const auto parts = parts_of(own);
  for (std::size_t i = 0; i < checksum_parts; ++i)
    if (!(std::abs(mean[i] - parts[i]) <= tolerance)) return false;
  return true;
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
