#pragma once

// The passes of kernels.h over vectors of DPWA_VECTOR_BYTES, as a KernelTable. Only for the variant
// sources (see variant.h for why everything here has internal linkage).

#include "interpolation/kernels/blend_pass.h"
#include "interpolation/kernels/land_pass.h"
#include "interpolation/kernels/variant.h"

namespace dpwa::kernels {
namespace {

template <class Element>
constexpr FloatingKernels floating_kernels() {
  return {land<Element, true>, land<Element, false>, delta_pass<Element>, lerp_pass<Element>};
}

constexpr KernelTable kernel_table() {
  return {floating_kernels<Float32>(), floating_kernels<Float64>(), floating_kernels<Float16>(),
          floating_kernels<BFloat16>()};
}

}  // namespace
}  // namespace dpwa::kernels
