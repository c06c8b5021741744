#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {

// What is wrong with what was decoded, which must not be sound.
Fault fault_of(const auto& decoded) {
  REQUIRE_FALSE(decoded.has_value());
  return decoded.error().fault;
}

// The body of `frame` with `value` at `offset` and a checksum that fits again.
inline std::vector<std::byte> altered(const std::vector<std::byte>& frame, std::size_t offset,
                                      std::uint8_t value) {
  const auto body = body_of(frame);
  std::vector<std::byte> content(body.begin(), body.end() - 4);
  content.at(offset) = std::byte{value};
  return sealed(content);
}

}  // namespace dpwa::wire
