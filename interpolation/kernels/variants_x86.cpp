#include <cpuid.h>

#include <vector>

#include "interpolation/kernels/variants.h"

namespace dpwa::kernels {
namespace {

// F16C has no name that every compiler's __builtin_cpu_supports knows. The operating system's
// support for its registers follows from that for AVX2.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

std::vector<Variant> detect() {
  std::vector<Variant> variants;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    const bool folds = __builtin_cpu_supports("vpclmulqdq");
    variants.push_back({"avx512", &avx512_kernels, folds ? avx512_land_checked : nullptr});
  }
  if (__builtin_cpu_supports("avx2") && has_f16c()) variants.push_back({"avx2", &avx2_kernels});
  variants.push_back({"baseline", &generic_kernels});
  return variants;
}

}  // namespace

std::span<const Variant> supported_variants() {
  static const auto& variants = *new auto(detect());
  return variants;
}

}  // namespace dpwa::kernels
