#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "dpwa/kvstore/values.h"

namespace dpwa::kvstore::testing {

inline std::vector<double> doubles_of(std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline Bytes bytes_of(const std::vector<double>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace dpwa::kvstore::testing
