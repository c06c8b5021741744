#include "dpwa/kvstore/memory_bound.h"

#include <algorithm>

#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore {

std::uint64_t memory_of(DType dtype, std::uint64_t elements) {
  const std::uint64_t slices =
      std::max<std::uint64_t>(1, (elements + slice_elements - 1) / slice_elements);
  return elements * (size_of(dtype) + size_of(computed_in(dtype))) + slices * bytes_beside_values;
}

std::uint64_t MemoryBound::recount(std::uint64_t counted, std::uint64_t bytes) {
  DPWA_INVARIANT(counted <= bytes_, "the bytes of a slice are counted", counted, bytes_);
  bytes_ += bytes - counted;
  return bytes;
}

std::optional<std::string> MemoryBound::shortage(std::uint64_t more) const {
  if (most_ == 0 || bytes_ + more <= most_) return std::nullopt;
  return "server " + server_ + " holds " + std::to_string(bytes_) + " bytes, and " +
         std::to_string(more) + " more are beyond its bound of " + std::to_string(most_) +
         "; accepted: a larger kvstore.memory_bytes, or more servers";
}

}  // namespace dpwa::kvstore
