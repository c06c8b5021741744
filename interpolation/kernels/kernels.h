#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "interpolation/kernels/dtype.h"

namespace dpwa::kernels {

// Vector passes over parameters of one dtype. Buffers are untyped bytes of `dtype` elements of
// equal length, need no alignment, and must not overlap unless they are the same buffer. fp16 and
// bf16 are computed in fp32 and rounded to nearest even once per element; fp64 is computed in fp64.
// A dtype that a pass does not take, or lengths that differ or cut an element, throw
// std::invalid_argument. Thread-safe.
//
// Each pass exists for the x86-64 baseline, AVX2+F16C and AVX-512, chosen once at run time, and in
// portable C++ elsewhere. All give the same bits, the statistics included (only the payload of a
// NaN may differ), so nodes of different hardware compute the same blend.

// What a landing pass learns for free on its way.
struct PassStats {
  // Sum of (peer - own)^2: squares in the type of the computation, summed in 32 (fp64: 16) lanes
  // that are flushed into fp64 after 128 elements each. Infinite when a square exceeds that type;
  // infinite or NaN when an element of `own` or `peer` is.
  double squared_distance = 0;
  // Every peer element is finite, and no landed difference overflowed its dtype. The latter is not
  // held against the peer when `own` itself has an element that is not finite.
  bool finite = true;
  PassStats& operator+=(const PassStats& other) {
    squared_distance += other.squared_distance;
    finite = finite && other.finite;
    return *this;
  }
};

// How a pass stores. `streaming` goes past the cache, for a target that is too large to be in it
// when it is read: its lines need not be read first and evict nothing. Takes effect on a processor
// that has such stores; in a pass that computes, for a target at a multiple of 64 bytes. The
// thread's later stores are ordered behind it either way.
enum class Stores { cached, streaming };

// landing = peer - own. Floating-point dtypes only.
PassStats land_difference(DType dtype, std::span<std::byte> landing,
                          std::span<const std::byte> peer, std::span<const std::byte> own,
                          Stores stores = Stores::cached);

// landing = peer bit for bit, with the same statistics. Floating-point dtypes only.
PassStats land_copy(DType dtype, std::span<std::byte> landing, std::span<const std::byte> peer,
                    std::span<const std::byte> own);

// Delta blend: x += factor * difference, with difference = peer snapshot - own snapshot of the
// moment the pull began. Keeps the effective learning rate at 1 (docs/INTERPOLATION.md). Factor 0
// leaves every bit of x. Floating-point dtypes only.
void delta(DType dtype, std::span<std::byte> x, std::span<const std::byte> difference,
           double factor);

// Lerp blend of the original dpwa: x = (1 - factor) * x + factor * peer. Factor 0 leaves every bit
// of x, factor 1 copies the peer. Floating-point dtypes only.
void lerp(DType dtype, std::span<std::byte> x, std::span<const std::byte> peer, double factor);

// delta() or lerp(), then copy = x, in one pass over memory and with the same bits.
void delta_copy(DType dtype, std::span<std::byte> x, std::span<const std::byte> difference,
                std::span<std::byte> copy, double factor, Stores stores);
void lerp_copy(DType dtype, std::span<std::byte> x, std::span<const std::byte> peer,
               std::span<std::byte> copy, double factor, Stores stores);

// to = from, of any content.
void copy(std::span<std::byte> to, std::span<const std::byte> from, Stores stores);

// x = max(x, peer), for integer counters (BatchNorm's num_batches_tracked). Integer dtypes only.
void maximum(DType dtype, std::span<std::byte> x, std::span<const std::byte> peer);

// The instruction set in use: "avx512", "avx2", "baseline" or "portable".
std::string_view instruction_set();

// Uses this one from now on instead of the fastest, to measure what a lesser processor does. Throws
// std::invalid_argument when the processor does not have it.
void use_instruction_set(std::string_view name);

}  // namespace dpwa::kernels
