#include "dpwa/kvstore/slices.h"

#include <algorithm>

#include "dpwa/base/invariant.h"

namespace dpwa::kvstore {
namespace {

// The elements of a large key that one server has.
ItemRange part_of(std::uint64_t elements, std::uint32_t servers, std::uint32_t server) {
  const std::uint64_t units = (elements + slice_alignment - 1) / slice_alignment;
  const ItemRange part = shard(units, servers, server);
  const std::uint64_t from = std::min(elements, part.from * slice_alignment);
  return {from, std::min(elements, part.end() * slice_alignment) - from};
}

}  // namespace

std::vector<Slice> cut_into_slices(const Key& key, std::uint64_t elements, std::uint32_t servers) {
  DPWA_INVARIANT(servers > 0, "a value is cut for some servers", elements);
  if (elements < large_key_elements) {
    return {{static_cast<std::uint32_t>(key.hash() % servers), {0, elements}}};
  }
  std::vector<Slice> slices;
  for (std::uint32_t server = 0; server < servers; ++server) {
    const ItemRange part = part_of(elements, servers, server);
    for (std::uint64_t from = part.from; from < part.end(); from += slice_elements)
      slices.push_back({server, {from, std::min(slice_elements, part.end() - from)}});
  }
  return slices;
}

std::uint64_t elements_at(const Key& key, std::uint64_t elements, std::uint32_t servers,
                          std::uint32_t server) {
  DPWA_INVARIANT(server < servers, "a part is that of one of the servers", server, servers);
  if (elements >= large_key_elements) return part_of(elements, servers, server).count;
  return key.hash() % servers == server ? elements : 0;
}

std::optional<Slice> slice_at(const Key& key, std::uint64_t elements, std::uint32_t servers,
                              std::uint32_t index) {
  DPWA_INVARIANT(servers > 0, "a slice is at one of some servers", elements, index);
  if (elements < large_key_elements) {
    if (index > 0) return std::nullopt;
    return Slice{static_cast<std::uint32_t>(key.hash() % servers), {0, elements}};
  }
  std::uint64_t left = index;  // slices to pass over
  for (std::uint32_t server = 0; server < servers; ++server) {
    const ItemRange part = part_of(elements, servers, server);
    const std::uint64_t slices = (part.count + slice_elements - 1) / slice_elements;
    if (left < slices) {
      const std::uint64_t from = part.from + left * slice_elements;
      return Slice{server, {from, std::min(slice_elements, part.end() - from)}};
    }
    left -= slices;
  }
  return std::nullopt;
}

}  // namespace dpwa::kvstore
