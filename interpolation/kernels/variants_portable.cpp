#include "interpolation/kernels/variants.h"

namespace dpwa::kernels {

std::span<const Variant> supported_variants() {
  static const Variant portable{"portable", &generic_kernels};
  return {&portable, 1};
}

}  // namespace dpwa::kernels
