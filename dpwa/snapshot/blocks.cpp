#include "dpwa/snapshot/blocks.h"

#include <algorithm>
#include <cassert>

namespace dpwa {

std::vector<ByteRange> layer_blocks(const Manifest& manifest, std::size_t count) {
  assert(count >= 1 && count <= max_blocks);
  const std::uint64_t total = manifest.exchange_bytes();
  std::vector<std::uint64_t> starts;
  for (std::size_t i = 0; i < manifest.tensors().size(); ++i) {
    if (manifest.offset_of(i) < total) starts.push_back(manifest.offset_of(i));
  }
  std::ranges::sort(starts);

  // The k-th cut goes to the tensor boundary nearest to k/count of the whole.
  std::vector<std::uint64_t> cuts{0};
  for (std::size_t k = 1; k < count; ++k) {
    const auto ideal = static_cast<std::uint64_t>(
        static_cast<double>(total) * static_cast<double>(k) / static_cast<double>(count));
    const auto above = std::ranges::lower_bound(starts, ideal);
    if (above == starts.begin()) continue;
    std::uint64_t nearest = *std::prev(above);
    if (above != starts.end() && *above - ideal < ideal - nearest) nearest = *above;
    if (nearest > cuts.back()) cuts.push_back(nearest);
  }
  cuts.push_back(total);

  std::vector<ByteRange> blocks;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    blocks.push_back({cuts[i], cuts[i + 1] - cuts[i]});
  return blocks;
}

}  // namespace dpwa
