#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dpwa {

// Element types that a snapshot may hold. The values travel on the wire: never renumber.
enum class DType : std::uint8_t {
  float32 = 1,
  float64 = 2,
  float16 = 3,  // IEEE 754 binary16
  bfloat16 = 4,
  int64 = 5,
  int32 = 6,
  int16 = 7,
  int8 = 8,
  uint8 = 9,
  boolean = 10,
};

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
      return 2;
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

constexpr bool is_floating_point(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::int64:
      return "int64";
    case DType::int32:
      return "int32";
    case DType::int16:
      return "int16";
    case DType::int8:
      return "int8";
    case DType::uint8:
      return "uint8";
    case DType::boolean:
      return "bool";
  }
  return "unknown";
}

}  // namespace dpwa
