#pragma once

#include <span>
#include <string_view>

#include "interpolation/kernels/codec.h"
#include "interpolation/kernels/variant.h"

namespace dpwa::kernels {

struct Variant {
  std::string_view name;  // as instruction_set() reports it
  const KernelTable* kernels;
};

// The variants that this CPU can run, fastest first; never empty. The first one serves kernels.h,
// tests run them all.
std::span<const Variant> supported_variants();

// Of a dtype that the codec encodes.
const EncodedKernels& encoded_kernels(const KernelTable& table, DType dtype, Codec codec);

}  // namespace dpwa::kernels
