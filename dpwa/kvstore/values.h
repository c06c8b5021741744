#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dpwa/snapshot/manifest.h"
#include "interpolation/kernels/dtype.h"

namespace dpwa::kvstore {

// The most bytes of a key that is text: as for the name of a tensor.
inline constexpr std::size_t max_key_bytes = max_tensor_name_bytes;

// The name of a value: an integer or a text, as in MXNet. The keys of one store are all of one
// kind. Ordered: integers by value, before texts.
class Key {
 public:
  Key() = default;                                           // 0
  Key(std::int64_t number) : value_(number) {}               // NOLINT: both are keys
  Key(int number) : value_(std::int64_t{number}) {}          // NOLINT
  Key(std::string text) : value_(std::move(text)) {}         // NOLINT
  Key(std::string_view text) : value_(std::string(text)) {}  // NOLINT
  Key(const char* text) : value_(std::string(text)) {}       // NOLINT

  bool is_number() const { return value_.index() == 0; }
  std::int64_t number() const { return std::get<std::int64_t>(value_); }     // if is_number()
  const std::string& name() const { return std::get<std::string>(value_); }  // if not
  // For a line of a log: 3 or 'fc1.weight'.
  std::string text() const;
  // FNV-1a of the text, or of the eight little-endian bytes of the number. It is the same on every
  // machine, because it decides which server has the key.
  std::uint64_t hash() const;

  auto operator<=>(const Key&) const = default;
  bool operator==(const Key&) const = default;

 private:
  std::variant<std::int64_t, std::string> value_;
};

// What is wrong with a key: a text that is empty, longer than max_key_bytes, not UTF-8 or with
// control characters. None when the key is valid.
std::optional<std::string> key_problem(const Key& key);

// The values that a store may hold.
constexpr bool is_stored(DType dtype) {
  return is_floating_point(dtype);
}
// The type in which values are summed and updated, and in which the optimizer keeps its state.
constexpr DType computed_in(DType dtype) {
  return dtype == DType::float64 ? DType::float64 : DType::float32;
}

// Type and shape of the value of a key. The first init() sets them, and they never change.
struct ValueSpec {
  DType dtype = DType::float32;
  std::vector<std::uint64_t> shape;

  // Throws std::invalid_argument above max_snapshot_bytes.
  std::uint64_t elements() const { return elements_of(shape); }
  std::uint64_t bytes() const { return elements() * size_of(dtype); }
  // Such as "float32[10,128]".
  std::string text() const { return type_text(dtype, shape); }

  bool operator==(const ValueSpec&) const = default;
};

// What is wrong with the spec: a type that no store holds, more than max_rank dimensions, more
// bytes than max_snapshot_bytes. None when it is valid.
std::optional<std::string> spec_problem(const ValueSpec& spec);

}  // namespace dpwa::kvstore
