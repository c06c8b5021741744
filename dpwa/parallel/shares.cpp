#include "dpwa/parallel/shares.h"

#include <algorithm>

#include "dpwa/base/invariant.h"

namespace dpwa {

std::uint64_t fewest_devices(std::uint64_t batch, std::uint64_t devices) {
  DPWA_INVARIANT(devices > 0, "a batch is shared by some devices", devices, batch);
  if (batch == 0) return 1;
  const std::uint64_t largest = (batch + devices - 1) / devices;
  return (batch + largest - 1) / largest;
}

std::uint64_t parts_of_at_least(std::uint64_t total, std::uint64_t parts, std::uint64_t least) {
  const std::uint64_t fitting = total / std::max<std::uint64_t>(1, least);
  return std::clamp<std::uint64_t>(fitting, 1, std::max<std::uint64_t>(1, parts));
}

std::vector<ItemRange> device_shares(std::uint64_t batch, std::uint64_t devices,
                                     std::uint64_t least) {
  const std::uint64_t used = parts_of_at_least(batch, fewest_devices(batch, devices), least);
  std::vector<ItemRange> shares;
  for (std::uint64_t i = 0; i < used; ++i) shares.push_back(shard(batch, used, i));
  return shares;
}

}  // namespace dpwa
