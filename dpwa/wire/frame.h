#pragma once

#include <array>
#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dpwa::wire {

inline constexpr std::uint8_t protocol_version = 1;

// Every message is a frame: a fixed header, then `body_bytes` of body, all little-endian.
//
//   offset size  header
//        0    4  magic "DPWA"
//        4    1  protocol version (1)
//        5    1  message type
//        6    2  flags, 0 in version 1
//        8    4  request id, echoed by the reply
//       12    4  reserved, 0
//       16    8  body length in bytes, the checksum of the body included
//       24    4  reserved, 0
//       28    4  CRC32C of bytes 0..27
inline constexpr std::size_t header_bytes = 32;

// The values travel on the wire: never renumber. Of 20-29 exchange, 31-39 membership and 80-95
// key-value messages, those that are not listed are reserved.
enum class MessageType : std::uint8_t {
  hello = 1,
  welcome = 2,
  reject = 3,
  manifest_request = 4,
  manifest = 5,
  pull = 6,
  snapshot = 7,
  not_modified = 8,
  not_ready = 9,
  busy = 10,
  error = 11,
  status_request = 12,
  status = 13,
  mapped = 14,   // same host only
  release = 15,  // same host only
  not_fresh = 16,
  share = 17,          // same host only
  shared = 18,         // same host only
  trace_request = 19,  // the answer is a STATUS
  members = 30,        // only between nodes that both have the capability
  view = 31,           // view_messages.h: only where a handler takes it
  // Messages of the key-value store (kv_messages.h): only where a handler takes them.
  kv_init = 64,
  kv_push = 65,
  kv_pull = 66,
  kv_answer = 67,
  kv_forward = 68,
  kv_sync = 69,
  kv_copy = 70,
  kv_stored = 71,
  kv_want = 72,
  kv_beat = 73,
  kv_ballot = 74,
  kv_promise = 75,
  kv_proposal = 76,
  kv_vote = 77,
  kv_epoch = 78,
  kv_ask_epoch = 79,
  kv_state = 80,
  kv_barrier = 81,
  // For values in memory that processes of one host share:
  kv_push_mapped = 82,
  kv_answer_mapped = 83,
  kv_read = 84,
};

// A set of message types with numbers below 128.
class TypeSet {
 public:
  static constexpr unsigned numbers = 128;

  constexpr TypeSet() = default;
  template <typename... Types>
  explicit constexpr TypeSet(MessageType first, Types... others) {
    add(first);
    (add(others), ...);
  }
  constexpr void add(MessageType type) {
    const auto number = static_cast<unsigned>(type);
    if (number < numbers) words_[number / 64] |= std::uint64_t{1} << number % 64;
  }
  constexpr bool has(MessageType type) const {
    const auto number = static_cast<unsigned>(type);
    return number < numbers && (words_[number / 64] >> number % 64 & 1) != 0;
  }
  constexpr TypeSet& operator|=(const TypeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  constexpr bool operator==(const TypeSet&) const = default;

 private:
  std::array<std::uint64_t, numbers / 64> words_{};
};

struct FrameHeader {
  MessageType type = MessageType::error;
  std::uint32_t request_id = 0;
  std::uint64_t body_bytes = 0;
};

// Why bytes were not accepted.
enum class Fault {
  truncated,
  bad_magic,
  bad_version,
  bad_type,
  bad_checksum,
  bad_length,
  bad_value
};
struct WireError {
  Fault fault = Fault::truncated;
  std::string detail;  // one line for the log
};
template <typename T>
using Decoded = boost::system::result<T, WireError>;

std::array<std::byte, header_bytes> encode_header(const FrameHeader& header);

// A message type that one end of a connection takes, with its longest body.
struct TypeBound {
  MessageType type = MessageType::error;
  std::uint64_t max_body_bytes = 0;
};

// Checks magic, version, checksum, type, reserved bits, and body_bytes against the bound of the
// type, before anything is allocated: fixed bounds for small messages, `max_snapshot_body` for
// SNAPSHOT. `more`: types beside those of this version, with their bounds.
Decoded<FrameHeader> decode_header(std::span<const std::byte, header_bytes> bytes,
                                   std::uint64_t max_snapshot_body,
                                   std::span<const TypeBound> more = {});

// Whether every session takes a message of this number; others only with a TypeBound.
constexpr bool is_message_type(unsigned number) {
  return (number >= static_cast<unsigned>(MessageType::hello) &&
          number <= static_cast<unsigned>(MessageType::trace_request)) ||
         number == static_cast<unsigned>(MessageType::members);
}

// Largest body of a message type (SNAPSHOT: 0, its bound is negotiated).
std::uint64_t max_body_bytes(MessageType type);

}  // namespace dpwa::wire
