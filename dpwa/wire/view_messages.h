#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dpwa/members/group_messages.h"
#include "dpwa/members/vote.h"
#include "dpwa/wire/frame.h"

namespace dpwa::wire {

// VIEW: what the processes of a group tell one another (members/group_messages.h), as bytes. A
// session takes it only for a handler that asks for it (TypeBound). There is no reply. Pure and
// thread-safe. encode() throws std::invalid_argument for a message that no one would accept;
// decode_view() never throws.

inline constexpr std::size_t max_view_members = 4096;
inline constexpr std::size_t max_operations_beyond = 4096;
inline constexpr std::size_t max_terms = 256;
inline constexpr std::uint64_t max_view_body_bytes = 4 << 20;

struct ViewFrame {
  members::ProcessId from;
  members::GroupMessage message;
};
std::vector<std::byte> encode(const members::ProcessId& from, const members::GroupMessage& message,
                              std::uint32_t request_id = 0);
Decoded<ViewFrame> decode_view(std::span<const std::byte> body);

// What a process keeps (members/vote.h), with a checksum, as the contents of a file.
std::vector<std::byte> to_bytes(const members::Kept& kept);
Decoded<members::Kept> kept_from(std::span<const std::byte> bytes);

}  // namespace dpwa::wire
