#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dpwa/base/item_range.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {

// Keys with fewer elements stay whole, as in MXNet (MXNET_KVSTORE_BIGARRAY_BOUND).
inline constexpr std::uint64_t large_key_elements = 1'000'000;
// The parts of a large key: 1 MiB of fp32, so that a sum stays in the second-level cache while the
// optimizer uses it.
inline constexpr std::uint64_t slice_elements = 262'144;
// Every slice but the last of a key begins and ends at a multiple of it: 64 bytes of fp32.
inline constexpr std::uint64_t slice_alignment = 16;

// A contiguous part of the value of one key, and the unit of messages, rounds, deduplication and
// atomic updates.
struct Slice {
  std::uint32_t server = 0;  // from 0, in the order of the cluster file
  ItemRange elements;        // of the value, flattened

  bool operator==(const Slice& other) const {
    return server == other.server && elements.from == other.elements.from &&
           elements.count == other.elements.count;
  }
};

// The slices of a value of `elements` elements on `servers` servers, at least one, in the order of
// elements; slice i is the i-th of them. They depend on nothing else, so that every worker and
// server computes them alone:
//   elements < large_key_elements   one slice, on server key.hash() mod servers;
//   otherwise                       server s has the s-th of `servers` contiguous parts, whose
//                                   sizes differ by slice_alignment at most (the last part also by
//                                   what is left of the value), in slices of slice_elements, of
//                                   which the last of each part may be smaller.
// At least one slice: a value without elements has an empty one.
std::vector<Slice> cut_into_slices(const Key& key, std::uint64_t elements, std::uint32_t servers);
// The elements of the value in the slices of one server.
std::uint64_t elements_at(const Key& key, std::uint64_t elements, std::uint32_t servers,
                          std::uint32_t server);
// The one of this number; none: there are not so many. Takes no memory, whatever the size is.
std::optional<Slice> slice_at(const Key& key, std::uint64_t elements, std::uint32_t servers,
                              std::uint32_t index);

}  // namespace dpwa::kvstore
