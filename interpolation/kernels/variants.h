#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "interpolation/kernels/codec.h"
#include "interpolation/kernels/kernels.h"
#include "interpolation/kernels/variant.h"

namespace dpwa::kernels {

struct Variant {
  std::string_view name;  // as instruction_set() reports it
  const KernelTable* kernels;
  LandChecked* land_checked = nullptr;  // null: this processor has not the instructions
};

// The variants that this CPU can run, fastest first; never empty. Tests run them all.
std::span<const Variant> supported_variants();

// The one that serves kernels.h and encoding.h: the first, unless use_instruction_set() chose.
const Variant& selected_variant();

inline constexpr std::size_t line_bytes = 64;

// Whether the streaming form of a pass can store to `target`.
inline bool streams(Stores stores, const std::byte* target) {
  return stores == Stores::streaming && reinterpret_cast<std::uintptr_t>(target) % line_bytes == 0;
}

// The kernels of a dtype that the codec encodes.
const EncodedKernels& encoded_kernels(const KernelTable& table, DType dtype, Codec codec);

}  // namespace dpwa::kernels
