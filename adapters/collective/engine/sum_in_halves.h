#pragma once

#include <ATen/core/Tensor.h>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/engine/reduce_options.h"

namespace dpwa::collective {

// Replaces `flat` (float32, one axis) by `scale` times its sum over all members, of which halves
// alone travel: an all-to-all gives each member one part of everybody's tensor, it adds them up in
// float32, rounds once, and an all-gather spreads the parts. All members end with the same bits.
// Blocks. Throws what c10d throws: call it in ProcessGroup::run. `compression` is not none. When it
// throws, `flat` holds nothing of use.
void sum_in_halves(const ProcessGroup& group, at::Tensor& flat, Compression compression,
                   double scale);

// Halves that stand for `values` times 2^exponent.
//
// fp16 holds 6e-8 to 65504, gradients may be smaller and larger. So fp16 travels with a power of
// two that brings the largest finite value near the top of that range: no finite value overflows,
// those down to 2^-38 of the largest are not lost, and all within 2^-28 of it are rounded to 11
// bits. Multiplying by a power of two rounds nothing. bf16 has the range of float32: exponent 0.
// Infinities and NaN stay what they are.
struct Halves {
  at::Tensor values;
  int exponent = 0;
};
Halves to_halves(const at::Tensor& tensor, Compression compression);

// The float32 values that they stand for.
at::Tensor from_halves(const Halves& halves);

}  // namespace dpwa::collective
