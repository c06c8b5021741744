#pragma once

// The pass that encodes what is served. Only for the variant sources (see variant.h).

#include "interpolation/kernels/codes.h"

namespace dpwa::kernels {
namespace {

// Bytes of the first `count` elements of an encoded block.
template <class Code>
constexpr std::size_t encoded_prefix(std::size_t count) {
  constexpr std::size_t half = kBlock<Float32> / 2;
  if constexpr (Code::kBytes == 2 * kBlock<Float32>) return 2 * count;
  return count + (count + half - 1) / half;  // int8
}

template <class Element, class Code>
inline void encode_block(std::byte* out, const std::byte* values) {
  FloatPack packs[kPacks];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kPacks; ++i) packs[i] = Element::load(values, i);
  Code::store(out, packs);
}

template <class Element, class Code>
void encode(std::byte* out, const std::byte* values, std::size_t count) {
  for (std::size_t blocks = count / kBlock<Element>; blocks > 0; --blocks) {
    encode_block<Element, Code>(out, values);
    out += Code::kBytes;
    values += kStride<Element>;
  }
  const std::size_t rest = count % kBlock<Element>;
  if (rest > 0) {
    std::byte block[kStride<Element>] = {};
    std::byte encoded[Code::kBytes];
    __builtin_memcpy(block, values, rest * Element::kSize);
    encode_block<Element, Code>(encoded, block);
    __builtin_memcpy(out, encoded, encoded_prefix<Code>(rest));
  }
}

}  // namespace
}  // namespace dpwa::kernels
