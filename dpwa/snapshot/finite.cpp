#include "dpwa/snapshot/finite.h"

#include <cassert>
#include <cstdint>
#include <cstring>

namespace dpwa {
namespace {

// Whether no element has the largest exponent.
template <class Bits>
bool is_finite_as(std::span<const std::byte> values, Bits exponent) {
  Bits found = 0;
  for (std::size_t at = 0; at + sizeof(Bits) <= values.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, values.data() + at, sizeof bits);
    found |= (bits & exponent) == exponent ? Bits{1} : Bits{0};
  }
  return found == 0;
}

}  // namespace

bool is_finite(DType dtype, std::span<const std::byte> values) {
  assert(is_floating_point(dtype));
  if (dtype == DType::float64) return is_finite_as<std::uint64_t>(values, 0x7ff0'0000'0000'0000U);
  if (dtype == DType::float32) return is_finite_as<std::uint32_t>(values, 0x7f80'0000U);
  return is_finite_as<std::uint16_t>(values, dtype == DType::float16 ? 0x7c00U : 0x7f80U);
}

const TensorSpec* first_not_finite(const Manifest& manifest, std::span<const std::byte> snapshot,
                                   ByteRange range) {
  const auto& tensors = manifest.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].rule != BlendRule::interpolate) continue;
    const ByteRange piece = overlap({manifest.offset_of(i), tensors[i].bytes()}, range);
    if (!is_finite(tensors[i].dtype, snapshot.subspan(piece.offset, piece.length)))
      return &tensors[i];
  }
  return nullptr;
}

}  // namespace dpwa
