#pragma once

#include <ATen/core/Tensor.h>

#include "adapters/collective/engine/process_group.h"
#include "dpwa/collective/reduce_options.h"

namespace dpwa::collective {

// Replaces `flat` (float32, one axis) by `scale` times its sum over all members. Only halves
// travel: an all-to-all gives each member one part of every tensor. It adds them in float32 and
// rounds once, and an all-gather distributes the parts. All members get the same bits.
// Blocks. Exceptions of c10d pass through, so call it in ProcessGroup::run. `compression` is not
// none. After an exception the content of `flat` is undefined.
void sum_in_halves(const ProcessGroup& group, at::Tensor& flat, Compression compression,
                   double scale);

// Half-precision numbers; each represents its value times 2^exponent.
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

}  // namespace dpwa::collective
