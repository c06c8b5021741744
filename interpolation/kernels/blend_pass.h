#pragma once

// The passes that change the model: x = a * x + b * y. Only for the variant sources (see
// variant.h).

#include "interpolation/kernels/elements.h"

namespace dpwa::kernels {
namespace {

// x = a * x + b * y, with a = 1 left out at compile time.
template <class Element, bool kScaleX>
inline void blend_block(std::byte* x, const std::byte* y, typename Element::Scalar a,
                        typename Element::Scalar b) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kPacks; ++i) {
    auto own = Element::load(x, i);
    const auto other = Element::load(y, i);
    if constexpr (kScaleX) {
      own.low *= a;
      own.high *= a;
    }
    Element::store(x, i, {own.low + other.low * b, own.high + other.high * b});
  }
}

template <class Element, bool kScaleX>
void blend(std::byte* x, const std::byte* y, std::size_t count, double scale_x, double scale_y) {
  const auto a = static_cast<typename Element::Scalar>(scale_x);
  const auto b = static_cast<typename Element::Scalar>(scale_y);
  for (std::size_t blocks = count / kBlock<Element>; blocks > 0; --blocks) {
    blend_block<Element, kScaleX>(x, y, a, b);
    x += kStride<Element>;
    y += kStride<Element>;
  }
  const std::size_t rest = count % kBlock<Element> * Element::kSize;
  if (rest > 0) {
    std::byte x_block[kStride<Element>] = {};
    std::byte y_block[kStride<Element>] = {};
    __builtin_memcpy(x_block, x, rest);
    __builtin_memcpy(y_block, y, rest);
    blend_block<Element, kScaleX>(x_block, y_block, a, b);
    __builtin_memcpy(x, x_block, rest);
  }
}

template <class Element>
void delta_pass(std::byte* x, const std::byte* difference, std::size_t count, double factor) {
  blend<Element, false>(x, difference, count, 1, factor);
}

template <class Element>
void lerp_pass(std::byte* x, const std::byte* peer, std::size_t count, double factor) {
  blend<Element, true>(x, peer, count, 1 - factor, factor);
}

}  // namespace
}  // namespace dpwa::kernels
