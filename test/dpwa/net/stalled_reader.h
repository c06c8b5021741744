#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>

#include "test/dpwa/net/conversation.h"

namespace dpwa::test {

constexpr std::size_t large_elements = 4 << 20;  // 16 MiB: more than the sockets' buffers take

inline wire::Pull pull_within(std::chrono::milliseconds deadline) {
  wire::Pull pull;
  pull.deadline_ms = static_cast<std::uint32_t>(deadline.count());
  return pull;
}

// w2 at the address `from`, which asks a node of `large_elements` for its snapshot and, once the
// reply has begun, reads no more.
inline RawSocket stalled_reader(std::uint16_t port, std::chrono::milliseconds deadline,
                                const char* from = nullptr) {
  constexpr int small_buffer = 4096;
  RawSocket reader(port, small_buffer, from);
  REQUIRE(introduce(reader, large_elements));
  REQUIRE(reader.send(wire::encode(pull_within(deadline), 2)));
  REQUIRE(reader.read(wire::header_bytes));
  return reader;
}

}  // namespace dpwa::test
