#pragma once

// The passes that land a peer's block: store and measure it at once. Only for the variant sources
// (see variant.h).

#include "interpolation/kernels/blend_pass.h"
#include "interpolation/kernels/elements.h"
#include "interpolation/kernels/variant.h"

namespace dpwa::kernels {
namespace {

// Lanes are flushed into fp64 after so many blocks: fp32 sums then stay within 1e-5 of the exact
// ones however long the pass.
inline constexpr std::size_t kFlushBlocks = 128;

template <class Element>
struct LandTotals {
  using Scalar = typename Element::Scalar;

  double squares[kBlock<Element>] = {};
  // Sums of v - v and the like: 0 while every v was finite, NaN for ever after.
  Scalar peer = 0;
  Scalar own = 0;
  Scalar landed = 0;

  RawStats stats() const {
    double sum = 0;
    for (const double lane : squares) sum += lane;
    const bool overflowed = landed != landed && own == own;
    return {sum, peer == peer && !overflowed};
  }
};

template <class Vector, class Scalar>
inline void add_lanes(Vector vector, Scalar& sum) {
  Scalar lanes[sizeof vector / sizeof sum];
  __builtin_memcpy(lanes, &vector, sizeof lanes);
  for (const Scalar lane : lanes) sum += lane;
}

// What a landing pass does beside landing and summing squares.
enum class Checks {
  all,   // which of the peer's, the own and the landed values are not finite
  none,  // nothing: for values that are finite when their squares are
};

// What a landing pass does with the peer's bytes beside landing them: nothing, or a checksum.
struct NoChecksum {
  template <class Vector>
  void add(Vector, Vector) {}
  static void fetch(const std::byte*) {}
};

// Lands a step, at most kFlushBlocks whole blocks: `blocks(checks, lanes)` lands them and leaves
// the sums of squares in `lanes`. Where the element in memory holds every value of the computation,
// nothing that is not finite leaves the squares finite, so the first pass does not check; a second
// one follows where the squares are not. It needs its input as it was: `again` says whether it is.
template <class Element, class Blocks>
inline void land_step(bool again, LandTotals<Element>& totals, Blocks blocks) {
  using Scalar = typename Element::Scalar;
  Scalar lanes[kBlock<Element>];
  Scalar check = 1;
  if (Element::kExact && again) {
    blocks.template operator()<Checks::none>(lanes);
    check = 0;
    for (const Scalar lane : lanes) check += lane - lane;
  }
  if (check != 0) blocks.template operator()<Checks::all>(lanes);
  for (std::size_t i = 0; i < kBlock<Element>; ++i) totals.squares[i] += lanes[i];
}

// Lands `blocks` whole blocks, at most kFlushBlocks of them. Streaming stores go by way of a block
// on the stack, which stays in registers or in the nearest cache.
template <class Element, bool kDifference, Copy kStores, Checks kChecks, class Checksum>
inline void land_blocks(std::byte* landing, const std::byte* peer, const std::byte* own,
                        std::size_t blocks, typename Element::Scalar (&lanes)[kBlock<Element>],
                        LandTotals<Element>& totals, Checksum& checksum) {
  Checksum running = checksum;  // in registers
  using Vector = typename Element::Vector;
  Vector low_squares[kPacks] = {}, high_squares[kPacks] = {};
  Vector peer_check = {}, own_check = {}, landed_check = {};
  constexpr bool kStreams = kStores == Copy::streaming;
  std::byte landed_block[kStride<Element>];
  for (; blocks > 0; --blocks) {
    std::byte* const target = kStreams ? landed_block : landing;
    if constexpr (kStreams) Checksum::fetch(own);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kPacks; ++i) {
      const auto theirs = Element::load(peer, i);
      running.add(theirs.low, theirs.high);
      const auto ours = Element::load(own, i);
      const Vector low = theirs.low - ours.low;
      const Vector high = theirs.high - ours.high;
      low_squares[i] += low * low;
      high_squares[i] += high * high;
      if constexpr (kChecks == Checks::all)
        peer_check += (theirs.low - theirs.low) + (theirs.high - theirs.high);
      if constexpr (kDifference) {
        const auto landed = Element::store(target, i, {low, high});
        if constexpr (kChecks == Checks::all) {
          own_check += (ours.low - ours.low) + (ours.high - ours.high);
          landed_check += (landed.low - landed.low) + (landed.high - landed.high);
        }
      }
    }
    if constexpr (!kDifference) copy_block<kStride<Element>, kStores>(landing, peer);
    if constexpr (kDifference && kStreams) {
      copy_block<kStride<Element>, kStores>(landing, landed_block);
    }
    landing += kStride<Element>;
    peer += kStride<Element>;
    own += kStride<Element>;
  }
  checksum = running;
  __builtin_memcpy(lanes, low_squares, sizeof low_squares);
  __builtin_memcpy(lanes + kBlock<Element> / 2, high_squares, sizeof high_squares);
  if constexpr (kChecks == Checks::all) {
    add_lanes(peer_check, totals.peer);
    add_lanes(own_check, totals.own);
    add_lanes(landed_check, totals.landed);
  }
}

// With a checksum, no two of the buffers are the same.
template <class Element, bool kDifference, Copy kStores, class Checksum>
void land_step(std::byte* landing, const std::byte* peer, const std::byte* own, std::size_t blocks,
               LandTotals<Element>& totals, Checksum& checksum) {
  const bool again = landing != peer && landing != own;
  land_step(again, totals, [&]<Checks kChecks>(typename Element::Scalar(&lanes)[kBlock<Element>]) {
    NoChecksum none;  // the first pass has been over the bytes
    if constexpr (kChecks == Checks::none) {
      land_blocks<Element, kDifference, kStores, kChecks>(landing, peer, own, blocks, lanes, totals,
                                                          checksum);
    } else {
      land_blocks<Element, kDifference, kStores, kChecks>(landing, peer, own, blocks, lanes, totals,
                                                          none);
    }
  });
}

// `checksum` gets the whole blocks.
template <class Element, bool kDifference, Copy kStores, class Checksum>
RawStats land_with(Checksum& checksum, std::byte* landing, const std::byte* peer,
                   const std::byte* own, std::size_t count) {
  LandTotals<Element> totals;
  std::size_t blocks = count / kBlock<Element>;
  while (blocks > 0) {
    const std::size_t step = blocks < kFlushBlocks ? blocks : kFlushBlocks;
    land_step<Element, kDifference, kStores>(landing, peer, own, step, totals, checksum);
    landing += step * kStride<Element>;
    peer += step * kStride<Element>;
    own += step * kStride<Element>;
    blocks -= step;
  }
  // The rest is a block filled up with zeros, which add nothing.
  const std::size_t rest = count % kBlock<Element> * Element::kSize;
  if (rest > 0) {
    std::byte landed_block[kStride<Element>];
    std::byte peer_block[kStride<Element>] = {};
    std::byte own_block[kStride<Element>] = {};
    __builtin_memcpy(peer_block, peer, rest);
    __builtin_memcpy(own_block, own, rest);
    NoChecksum none;
    land_step<Element, kDifference, Copy::cached>(landed_block, peer_block, own_block, 1, totals,
                                                  none);
    __builtin_memcpy(landing, landed_block, rest);
  }
  if constexpr (kStores == Copy::streaming) stream_fence();
  return totals.stats();
}

template <class Element, bool kDifference, Copy kStores>
RawStats land(std::byte* landing, const std::byte* peer, const std::byte* own, std::size_t count) {
  NoChecksum none;
  return land_with<Element, kDifference, kStores>(none, landing, peer, own, count);
}

}  // namespace
}  // namespace dpwa::kernels
