#include "dpwa/kvworker/weights_checksum.h"

#include <cmath>

namespace dpwa {
namespace {

// A sum of weighted numbers below 1 in fp32, divided by the sum of n weights, is off by n x 2^-23
// at most: no 800 members reach this. Two bytes that differ are 1/256 apart, so one of them is off
// by 1/512 at least.
constexpr float tolerance = 1e-4F;

}  // namespace

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

}  // namespace dpwa
