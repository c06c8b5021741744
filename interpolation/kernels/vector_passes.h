#pragma once

// The passes of kernels.h over vectors of DPWA_VECTOR_BYTES, as a KernelTable. Only for the variant
// sources (see variant.h for why everything here has internal linkage).

#include "interpolation/kernels/blend_pass.h"
#include "interpolation/kernels/encoded_passes.h"
#include "interpolation/kernels/land_pass.h"
#include "interpolation/kernels/two_bit_passes.h"
#include "interpolation/kernels/update_passes.h"
#include "interpolation/kernels/variant.h"

namespace dpwa::kernels {
namespace {

template <class Element>
constexpr FloatingKernels floating_kernels() {
  return {land<Element, true, Copy::cached>,
          land<Element, false, Copy::cached>,
          delta_pass<Element>,
          lerp_pass<Element>,
          delta_copy_pass<Element>,
          lerp_copy_pass<Element>,
          land<Element, true, Copy::streaming>};
}

template <class Element, class Code>
constexpr EncodedKernels encoded_kernels() {
  return {encode<Element, Code>, land_encoded<Element, Code, true, Copy::cached>,
          land_encoded<Element, Code, false, Copy::cached>,
          land_encoded<Element, Code, true, Copy::streaming>};
}

constexpr EncodedTable encoded_table() {
  return {encoded_kernels<Float32, CodeFp16>(),       encoded_kernels<Float32, CodeBf16>(),
          encoded_kernels<Float32, CodeInt8>(),       encoded_kernels<NarrowFloat64, CodeFp16>(),
          encoded_kernels<NarrowFloat64, CodeBf16>(), encoded_kernels<NarrowFloat64, CodeInt8>(),
          encoded_kernels<Float16, CodeInt8>(),       encoded_kernels<InOrderBFloat16, CodeInt8>()};
}

constexpr UpdateTable update_table() {
  return {update_kernels<Float32>(),         update_kernels<Float64>(), update_kernels<Float16>(),
          update_kernels<InOrderBFloat16>(), take_codes_pass,           give_values_pass};
}

constexpr KernelTable kernel_table() {
  return {floating_kernels<Float32>(),
          floating_kernels<Float64>(),
          floating_kernels<Float16>(),
          floating_kernels<BFloat16>(),
          encoded_table(),
          update_table(),
          streaming_copy_pass};
}

}  // namespace
}  // namespace dpwa::kernels
