#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <utility>

#include "interpolation/kernels/dtype.h"

namespace dpwa {

// Element types of torch and of snapshots.
inline constexpr std::pair<c10::ScalarType, DType> element_types[] = {
    {c10::kFloat, DType::float32},     {c10::kDouble, DType::float64}, {c10::kHalf, DType::float16},
    {c10::kBFloat16, DType::bfloat16}, {c10::kLong, DType::int64},     {c10::kInt, DType::int32},
    {c10::kShort, DType::int16},       {c10::kChar, DType::int8},      {c10::kByte, DType::uint8},
    {c10::kBool, DType::boolean}};

// None: a type that cannot be shared (complex, quantised).
constexpr std::optional<DType> to_dtype(c10::ScalarType type) {
  for (const auto& [torch_type, own] : element_types)
    if (torch_type == type) return own;
  return std::nullopt;
}

constexpr c10::ScalarType to_scalar_type(DType dtype) {
  for (const auto& [torch_type, own] : element_types)
    if (own == dtype) return torch_type;
  return c10::kByte;
}

}  // namespace dpwa
