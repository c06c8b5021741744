#pragma once

#include <cstddef>
#include <span>

#include "interpolation/kernels/codec.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::kernels {

// Vector passes between parameters and their encoded form, under the rules of kernels.h: any
// alignment, no overlap, the same bits from every variant, std::invalid_argument for a dtype that
// the codec does not encode or for lengths that do not fit. All compute in fp32; fp64 is rounded to
// it first. Formats and rounding: docs/ENCODINGS.md.

// out = values, rounded to nearest even. What overflows the codec becomes its largest finite value;
// what is not finite stays so (int8: with its whole block), so that the receiver sees it. `out` has
// encoded_bytes(dtype, codec, values.size()).
void encode(DType dtype, Codec codec, std::span<std::byte> out, std::span<const std::byte> values);

// landing = peer - Q(own), where Q rounds as the peer's encoder did (int8: to multiples of the unit
// of the peer's block, without its bounds). Like is compared with like: at consensus the difference
// is exactly zero, and while Q is the same at both ends, what one gains the other loses: the mean
// of all nodes keeps its course. The squared distance is that of what lands.
PassStats land_encoded_difference(DType dtype, Codec codec, std::span<std::byte> landing,
                                  std::span<const std::byte> encoded,
                                  std::span<const std::byte> own, Stores stores = Stores::cached);

// landing = peer. The squared distance is that from `own` as it is.
PassStats land_encoded_copy(DType dtype, Codec codec, std::span<std::byte> landing,
                            std::span<const std::byte> encoded, std::span<const std::byte> own);

}  // namespace dpwa::kernels
