#pragma once

// The pass that encodes what is served, and the passes that land an encoded block of a peer. Only
// for the variant sources (see variant.h).

#include "interpolation/kernels/codes.h"
#include "interpolation/kernels/land_pass.h"

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

// Lands `blocks` whole blocks, at most kFlushBlocks of them.
template <class Element, class Code, bool kDifference, Copy kStores, Checks kChecks>
inline void land_encoded_blocks(std::byte* landing, const std::byte* encoded, const std::byte* own,
                                std::size_t blocks, float (&lanes)[kBlock<Element>],
                                LandTotals<Element>& totals) {
  Floats low_squares[kPacks] = {}, high_squares[kPacks] = {};
  Floats peer_check = {}, own_check = {}, landed_check = {};
  constexpr bool kStreams = kStores == Copy::streaming;
  std::byte landed_block[kStride<Element>];
  for (; blocks > 0; --blocks) {
    std::byte* const target = kStreams ? landed_block : landing;
    const auto grid = Code::grid(encoded);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kPacks; ++i) {
      const FloatPack theirs = Code::load(encoded, i, grid);
      const FloatPack ours = Element::load(own, i);
      const FloatPack like = kDifference ? Code::round(ours, grid) : ours;
      const FloatPack gap = {theirs.low - like.low, theirs.high - like.high};
      low_squares[i] += gap.low * gap.low;
      high_squares[i] += gap.high * gap.high;
      const FloatPack landed = Element::store(target, i, kDifference ? gap : theirs);
      if constexpr (kChecks == Checks::all) {
        peer_check += (theirs.low - theirs.low) + (theirs.high - theirs.high);
        own_check += (ours.low - ours.low) + (ours.high - ours.high);
        landed_check += (landed.low - landed.low) + (landed.high - landed.high);
      }
    }
    if constexpr (kStreams) copy_block<kStride<Element>, kStores>(landing, landed_block);
    landing += kStride<Element>;
    encoded += Code::kBytes;
    own += kStride<Element>;
  }
  __builtin_memcpy(lanes, low_squares, sizeof low_squares);
  __builtin_memcpy(lanes + kBlock<Element> / 2, high_squares, sizeof high_squares);
  if constexpr (kChecks == Checks::all) {
    add_lanes(peer_check, totals.peer);
    add_lanes(own_check, totals.own);
    add_lanes(landed_check, totals.landed);
  }
}

template <class Element, class Code, bool kDifference, Copy kStores>
void land_encoded_step(std::byte* landing, const std::byte* encoded, const std::byte* own,
                       std::size_t blocks, LandTotals<Element>& totals) {
  land_step(landing != own, totals, [&]<Checks kChecks>(float(&lanes)[kBlock<Element>]) {
    land_encoded_blocks<Element, Code, kDifference, kStores, kChecks>(landing, encoded, own, blocks,
                                                                      lanes, totals);
  });
}

template <class Element, class Code, bool kDifference, Copy kStores>
RawStats land_encoded(std::byte* landing, const std::byte* encoded, const std::byte* own,
                      std::size_t count) {
  LandTotals<Element> totals;
  std::size_t blocks = count / kBlock<Element>;
  while (blocks > 0) {
    const std::size_t step = blocks < kFlushBlocks ? blocks : kFlushBlocks;
    land_encoded_step<Element, Code, kDifference, kStores>(landing, encoded, own, step, totals);
    landing += step * kStride<Element>;
    encoded += step * Code::kBytes;
    own += step * kStride<Element>;
    blocks -= step;
  }
  // The rest is a block filled up with zeros, which add nothing.
  const std::size_t rest = count % kBlock<Element>;
  if (rest > 0) {
    std::byte landed_block[kStride<Element>];
    std::byte encoded_block[Code::kBytes] = {};
    std::byte own_block[kStride<Element>] = {};
    __builtin_memcpy(encoded_block, encoded, encoded_prefix<Code>(rest));
    __builtin_memcpy(own_block, own, rest * Element::kSize);
    land_encoded_step<Element, Code, kDifference, Copy::cached>(landed_block, encoded_block,
                                                                own_block, 1, totals);
    __builtin_memcpy(landing, landed_block, rest * Element::kSize);
  }
  if constexpr (kStores == Copy::streaming) stream_fence();
  return totals.stats();
}

}  // namespace
}  // namespace dpwa::kernels
