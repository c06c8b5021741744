#include <cstring>
#include <stdexcept>
#include <string>

#include "interpolation/kernels/kernels.h"

namespace dpwa::kernels {
namespace {

// Counters are few, so this pass has no variants.
template <class Integer>
void maximum_of(std::span<std::byte> x, std::span<const std::byte> peer) {
  for (std::size_t at = 0; at < x.size(); at += sizeof(Integer)) {
    Integer own, other;
    std::memcpy(&own, x.data() + at, sizeof own);
    std::memcpy(&other, peer.data() + at, sizeof other);
    if (other > own) std::memcpy(x.data() + at, &other, sizeof other);
  }
}

}  // namespace

void maximum(DType dtype, std::span<std::byte> x, std::span<const std::byte> peer) {
  const std::size_t size = size_of(dtype);
  if (size == 0 || x.size() != peer.size() || x.size() % size != 0) {
    throw std::invalid_argument("maximum over " + std::string(name_of(dtype)) + " buffers of " +
                                std::to_string(x.size()) + " and " + std::to_string(peer.size()) +
                                " bytes");
  }
  switch (dtype) {
    case DType::int64:
      return maximum_of<std::int64_t>(x, peer);
    case DType::int32:
      return maximum_of<std::int32_t>(x, peer);
    case DType::int16:
      return maximum_of<std::int16_t>(x, peer);
    case DType::int8:
      return maximum_of<std::int8_t>(x, peer);
    case DType::uint8:
    case DType::boolean:
      return maximum_of<std::uint8_t>(x, peer);
    default:
      break;
  }
  throw std::invalid_argument("an integer pass over " + std::string(name_of(dtype)));
}

}  // namespace dpwa::kernels
