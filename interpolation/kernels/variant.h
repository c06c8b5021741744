#pragma once

#include <cstddef>
#include <cstdint>

#include "interpolation/kernels/update_terms.h"

namespace dpwa::kernels {

// The passes of kernels.h for one instruction set, as plain functions over `count` elements.
//
// Sources that are compiled for a wide instruction set include this header instead of kernels.h and
// keep everything else in an unnamed namespace: an inline function or template with external
// linkage (any of std, or a member of PassStats) that they emitted with wide instructions could be
// the copy that the linker keeps for the whole program, which would then crash on an older CPU.

struct RawStats {
  double squared_distance;
  bool finite;
};

struct FloatingKernels {
  RawStats (*land_difference)(std::byte* landing, const std::byte* peer, const std::byte* own,
                              std::size_t count);
  RawStats (*land_copy)(std::byte* landing, const std::byte* peer, const std::byte* own,
                        std::size_t count);
  void (*delta)(std::byte* x, const std::byte* difference, std::size_t count, double factor);
  void (*lerp)(std::byte* x, const std::byte* peer, std::size_t count, double factor);
  // `copy` at a multiple of 64 when `streaming`.
  void (*delta_copy)(std::byte* x, const std::byte* difference, std::byte* copy, std::size_t count,
                     double factor, bool streaming);
  void (*lerp_copy)(std::byte* x, const std::byte* peer, std::byte* copy, std::size_t count,
                    double factor, bool streaming);
  // With stores past the cache; `landing` at a multiple of 64.
  RawStats (*land_difference_streaming)(std::byte* landing, const std::byte* peer,
                                        const std::byte* own, std::size_t count);
};

// The passes of encoding.h.
struct EncodedKernels {
  void (*encode)(std::byte* out, const std::byte* values, std::size_t count);
  RawStats (*land_difference)(std::byte* landing, const std::byte* encoded, const std::byte* own,
                              std::size_t count);
  RawStats (*land_copy)(std::byte* landing, const std::byte* encoded, const std::byte* own,
                        std::size_t count);
  // With stores past the cache; `landing` at a multiple of 64.
  RawStats (*land_difference_streaming)(std::byte* landing, const std::byte* encoded,
                                        const std::byte* own, std::size_t count);
};

struct EncodedTable {
  EncodedKernels float32_fp16;
  EncodedKernels float32_bf16;
  EncodedKernels float32_int8;
  EncodedKernels float64_fp16;
  EncodedKernels float64_bf16;
  EncodedKernels float64_int8;
  EncodedKernels float16_int8;
  EncodedKernels bfloat16_int8;
};

// The passes of updates.h for values of one dtype. Sums and states: fp32, or fp64 for fp64.
struct UpdateKernels {
  bool (*sum)(std::byte* sum, const std::byte* const* parts, const double* weights,
              std::size_t part_count, std::size_t count, bool onto);
  // By Update.
  void (*update[update_count])(std::byte* values, const std::byte* sum, std::byte* const* state,
                               std::size_t count, const UpdateTerms& terms);
};

struct UpdateTable {
  UpdateKernels float32;
  UpdateKernels float64;
  UpdateKernels float16;
  UpdateKernels bfloat16;
  // fp32 values and their codes of two bits.
  void (*take_codes)(std::byte* codes, std::byte* residual, const std::byte* values,
                     std::size_t count, float threshold);
  void (*give_values)(std::byte* values, const std::byte* codes, std::size_t count,
                      float threshold);
};

struct KernelTable {
  FloatingKernels float32;
  FloatingKernels float64;
  FloatingKernels float16;
  FloatingKernels bfloat16;
  EncodedTable encoded;
  UpdateTable updates;
  void (*streaming_copy)(std::byte* to, const std::byte* from, std::size_t bytes);  // `to` as above
};

// Vectors of 16 bytes: SSE2 on x86-64, whatever the target has elsewhere.
extern const KernelTable generic_kernels;
// x86-64 only.
extern const KernelTable avx2_kernels;
extern const KernelTable avx512_kernels;

// Lands the difference of fp32 elements, and continues the state of a CRC32C over the peer's bytes.
// No two of the buffers are the same.
using LandChecked = RawStats(std::byte* landing, const std::byte* peer, const std::byte* own,
                             std::size_t count, bool streaming, std::uint32_t& state);
LandChecked avx512_land_checked;  // on processors with VPCLMULQDQ

}  // namespace dpwa::kernels
