#define DPWA_VECTOR_BYTES 16
#include "interpolation/kernels/half_software.h"
#include "interpolation/kernels/vector_passes.h"

namespace dpwa::kernels {

constinit const KernelTable generic_kernels = kernel_table();

}  // namespace dpwa::kernels
