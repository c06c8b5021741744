#pragma once

// Copies, with stores into the cache or past it. Only for the variant sources (see variant.h),
// after a definition of
//   stream_bytes(to, words)   a store past the cache; `to` at a multiple of DPWA_VECTOR_BYTES
//   stream_fence()            orders such stores before every later one

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

}  // namespace
}  // namespace dpwa::kernels
