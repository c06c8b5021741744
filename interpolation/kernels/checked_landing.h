#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "interpolation/kernels/kernels.h"

namespace dpwa::kernels {

// Whether land_difference_checked() exists: for fp32 on processors with AVX-512 and VPCLMULQDQ.
bool checks_while_landing(DType dtype);
// land_difference() that also takes the bytes of `peer` into a CRC32C, for next to nothing: they
// are in registers. `state`: of the checksum, without the inversions of RFC 3720. No two of the
// buffers are the same.
PassStats land_difference_checked(DType dtype, std::span<std::byte> landing,
                                  std::span<const std::byte> peer, std::span<const std::byte> own,
                                  Stores stores, std::uint32_t& state);

}  // namespace dpwa::kernels
