#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpolation/kernels/dtype.h"

namespace dpwa {

// How parameters travel. The values travel on the wire: never renumber. A codec applies to
// floating-point elements wider than itself (see encodes()); everything else travels raw.
enum class Codec : std::uint8_t {
  raw = 1,   // the tensors' own dtypes
  fp16 = 2,  // IEEE 754 binary16
  bf16 = 3,
  int8 = 4,  // blocks of 16 elements with a common power of two
};

// As transport.encoding has it.
constexpr std::string_view name_of(Codec codec) {
  switch (codec) {
    case Codec::raw:
      return "fp32";
    case Codec::fp16:
      return "fp16";
    case Codec::bf16:
      return "bf16";
    case Codec::int8:
      return "int8";
  }
  return "unknown";
}

constexpr bool encodes(Codec codec, DType dtype) {
  if (dtype == DType::float32 || dtype == DType::float64) return codec != Codec::raw;
  return is_floating_point(dtype) && codec == Codec::int8;
}

inline constexpr std::size_t int8_block = 16;  // elements

// What `bytes` of the dtype take once encoded, never more than `bytes`: the last int8 block may be
// short. For dtypes that the codec encodes, and whole elements.
template <class Size>
constexpr Size encoded_bytes(DType dtype, Codec codec, Size bytes) {
  const Size count = bytes / size_of(dtype);
  return codec == Codec::int8 ? count + (count + int8_block - 1) / int8_block : 2 * count;
}

}  // namespace dpwa
