#include "dpwa/kvstore/slices.h"

#include <algorithm>
#include <cassert>

namespace dpwa::kvstore {

std::vector<Slice> cut_into_slices(const Key& key, std::uint64_t elements, std::uint32_t servers) {
  assert(servers > 0);
  if (elements < large_key_elements) {
    return {{static_cast<std::uint32_t>(key.hash() % servers), {0, elements}}};
  }
  std::vector<Slice> slices;
  const std::uint64_t units = (elements + slice_alignment - 1) / slice_alignment;
  for (std::uint32_t server = 0; server < servers; ++server) {
    const ItemRange part = shard(units, servers, server);
    const std::uint64_t end = std::min(elements, part.end() * slice_alignment);
    for (std::uint64_t from = part.from * slice_alignment; from < end; from += slice_elements)
      slices.push_back({server, {from, std::min(slice_elements, end - from)}});
  }
  return slices;
}

}  // namespace dpwa::kvstore
