#pragma once

// Copies, with stores into the cache or past it, and the passes that change the model: x = a * x +
// b * y, and those that copy the result on their way. Only for the variant sources (see variant.h),
// after a definition of
//   stream_bytes(to, words)   a store past the cache; `to` at a multiple of DPWA_VECTOR_BYTES
//   stream_fence()            orders such stores before every later one

#include "interpolation/kernels/elements.h"
#include "interpolation/kernels/vector_types.h"

namespace dpwa::kernels {
namespace {

enum class Copy { none, cached, streaming };

template <std::size_t bytes, Copy kCopy>
inline void copy_block(std::byte* to, const std::byte* from) {
#pragma GCC unroll 8
  for (std::size_t at = 0; at < bytes; at += DPWA_VECTOR_BYTES) {
    const auto words = load_bytes<Words>(from + at);
    if constexpr (kCopy == Copy::streaming) {
      stream_bytes(to + at, words);
    } else {
      store_bytes(to + at, words);
    }
  }
}

// `to` at a multiple of 64.
inline void streaming_copy_pass(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  std::size_t at = 0;
  for (; at + kLine <= bytes; at += kLine) {
    copy_block<kLine, Copy::streaming>(to + at, from + at);
  }
  __builtin_memcpy(to + at, from + at, bytes - at);
  stream_fence();
}

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

// `copy` is used by the passes that copy alone.
template <class Element, bool kScaleX, Copy kCopy>
void blend(std::byte* x, const std::byte* y, std::byte* copy, std::size_t count, double scale_x,
           double scale_y) {
  const auto a = static_cast<typename Element::Scalar>(scale_x);
  const auto b = static_cast<typename Element::Scalar>(scale_y);
  for (std::size_t blocks = count / kBlock<Element>; blocks > 0; --blocks) {
    blend_block<Element, kScaleX>(x, y, a, b);
    // Reads what has just been stored: the copy has its very bits, rounded as x is.
    if constexpr (kCopy != Copy::none) {
      copy_block<kStride<Element>, kCopy>(copy, x);
      copy += kStride<Element>;
    }
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
    if constexpr (kCopy != Copy::none) __builtin_memcpy(copy, x_block, rest);
  }
  if constexpr (kCopy == Copy::streaming) stream_fence();
}

template <class Element>
void delta_pass(std::byte* x, const std::byte* difference, std::size_t count, double factor) {
  blend<Element, false, Copy::none>(x, difference, nullptr, count, 1, factor);
}

template <class Element>
void lerp_pass(std::byte* x, const std::byte* peer, std::size_t count, double factor) {
  blend<Element, true, Copy::none>(x, peer, nullptr, count, 1 - factor, factor);
}

template <class Element>
void delta_copy_pass(std::byte* x, const std::byte* difference, std::byte* copy, std::size_t count,
                     double factor, bool streaming) {
  const auto pass =
      streaming ? blend<Element, false, Copy::streaming> : blend<Element, false, Copy::cached>;
  pass(x, difference, copy, count, 1, factor);
}

template <class Element>
void lerp_copy_pass(std::byte* x, const std::byte* peer, std::byte* copy, std::size_t count,
                    double factor, bool streaming) {
  const auto pass =
      streaming ? blend<Element, true, Copy::streaming> : blend<Element, true, Copy::cached>;
  pass(x, peer, copy, count, 1 - factor, factor);
}

}  // namespace
}  // namespace dpwa::kernels
