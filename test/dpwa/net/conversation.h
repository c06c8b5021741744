#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/wire/messages.h"
#include "test/support/raw_socket.h"

namespace dpwa::test {

// The sound parts of a conversation, for either side to break off at the point of a test.

// As w2 of cluster "test" with a vector of `elements`.
wire::Hello sound_hello(std::size_t elements = 16);
// Says hello and is made welcome.
bool introduce(RawSocket& socket, std::size_t elements = 16);

// Reads a HELLO and answers it as `name`, a node that has no weights to start from. `same_host`:
// its offer.
bool welcome(RawSocket& socket, const std::string& name,
             std::uint32_t capabilities = sound_hello().capabilities,
             const std::string& same_host = "");
struct PullSeen {
  std::uint32_t request_id = 0;
  wire::Pull pull;
};
std::optional<PullSeen> read_pull(RawSocket& socket);

Progress sound_progress(std::uint64_t version = 1);
// The reply to a pull: `values` as a float32 vector, without checksums if the pull says so.
std::vector<std::byte> snapshot_frame(const PullSeen& request, std::span<const float> values,
                                      const Progress& progress = sound_progress());

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
