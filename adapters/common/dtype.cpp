#include "adapters/common/dtype.h"

namespace dpwa {

std::optional<DType> to_dtype(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DType::float32;
    case at::kDouble:
      return DType::float64;
    case at::kHalf:
      return DType::float16;
    case at::kBFloat16:
      return DType::bfloat16;
    case at::kLong:
      return DType::int64;
    case at::kInt:
      return DType::int32;
    case at::kShort:
      return DType::int16;
    case at::kChar:
      return DType::int8;
    case at::kByte:
      return DType::uint8;
    case at::kBool:
      return DType::boolean;
    default:
      return std::nullopt;
  }
}

at::ScalarType to_scalar_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return at::kFloat;
    case DType::float64:
      return at::kDouble;
    case DType::float16:
      return at::kHalf;
    case DType::bfloat16:
      return at::kBFloat16;
    case DType::int64:
      return at::kLong;
    case DType::int32:
      return at::kInt;
    case DType::int16:
      return at::kShort;
    case DType::int8:
      return at::kChar;
    case DType::uint8:
      return at::kByte;
    case DType::boolean:
      return at::kBool;
  }
  return at::kByte;
}

}  // namespace dpwa
