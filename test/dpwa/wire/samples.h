#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/wire/messages.h"

namespace dpwa::wire {

// Fixed messages, one or more of every type; the golden file holds their frames.
struct Sample {
  std::string name;
  std::vector<std::byte> frame;
};
// Of all frames.
inline constexpr std::uint32_t request_id = 0x01020304;

std::vector<Sample> samples();
// The bounds of those that need one.
std::vector<TypeBound> bounds();
// Of these samples, those of views.
std::vector<Sample> view_samples();
// Those of the key-value store, and their bounds.
std::vector<Sample> kv_samples();
std::vector<TypeBound> kv_bounds();
Decoded<std::vector<std::byte>> transcode_kv(MessageType type, std::uint32_t request_id,
                                             std::span<const std::byte> body);

Manifest sample_manifest();
Hello sample_hello();
Welcome sample_welcome();
SnapshotReplyHead sample_head();
Mapped sample_mapped();
MemberExchange sample_members();

std::span<const std::byte> body_of(const std::vector<std::byte>& frame);
FrameHeader header_of(const std::vector<std::byte>& frame);  // fails the test when it is refused

// Decodes `body` as a message of `type` and encodes the result again: the frame, or the fault. A
// SNAPSHOT goes through head, chunk headers and payload checksums, as its receiver does it.
Decoded<std::vector<std::byte>> transcode(MessageType type, std::uint32_t request_id,
                                          std::span<const std::byte> body);
// The same for a whole frame, header first.
Decoded<std::vector<std::byte>> transcode(std::span<const std::byte> frame);

// Whether this frame is accepted, and encoded to the same bytes again: every field came through.
bool survives(std::span<const std::byte> frame);

// `content` with its CRC32C appended.
std::vector<std::byte> sealed(std::span<const std::byte> content);

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
