#include <utility>

#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

constexpr std::uint8_t full_flag = 1;
constexpr std::uint8_t final_average_flag = 2;
constexpr std::uint8_t taken_flag = 4;
constexpr std::uint8_t may_map_flag = 8;

// The fault in the values of a pull; empty when there is none.
std::string_view fault_of(const Pull& message) {
  if (message.offset > max_snapshot_bytes || message.length > max_snapshot_bytes - message.offset) {
    return "pulled range ends beyond 2^48 bytes";
  }
  if (!is_chunk_size(message.chunk_bytes)) {
    return "chunk size is not a multiple of 64 from 4 KiB to 16 MiB";
  }
  return {};
}

}  // namespace

// PULL
//   offset size
//        0    8  version already known, 0 = none
//        8    8  offset of the range in the snapshot
//       16    8  length of the range, 0 = to the end
//       24    4  deadline in ms
//       28    4  chunk size of the reply
//       32    1  codec: 1 raw, 2 fp16, 3 bf16, 4 int8
//       33    1  flags: bit 0 full, bit 1 for the final average, bit 2 states what was taken,
//                bit 3 the answer may be MAPPED, bit 7 without chunk checksums; the others 0
//       34    2  what the caller has taken of this node; without bit 2: 0
//       36    4  CRC32C of bytes 0..35
template <typename Side>
void fields(Side& side, Of<Side, Pull>& message) {
  auto flags = static_cast<std::uint8_t>(
      (message.full ? full_flag : 0) | (message.for_final_average ? final_average_flag : 0) |
      (message.taken ? taken_flag : 0) | (message.may_map ? may_map_flag : 0) |
      (message.unchecked_chunks ? unchecked_chunks_flag : 0));
  std::uint16_t taken = message.taken.value_or(0);
  side.field(message.known_version);
  side.field(message.offset);
  side.field(message.length);
  side.field(message.deadline_ms);
  side.field(message.chunk_bytes);
  side.choice(message.codec, Codec::raw, Codec::int8, "codec");
  side.field(flags);
  side.field(taken);
  if constexpr (reads<Side>) {
    constexpr unsigned known_flags =
        full_flag | final_average_flag | taken_flag | may_map_flag | unchecked_chunks_flag;
    side.require((flags & ~known_flags) == 0, Fault::bad_value, "unknown flags in PULL");
    message.full = (flags & full_flag) != 0;
    message.for_final_average = (flags & final_average_flag) != 0;
    message.may_map = (flags & may_map_flag) != 0;
    message.unchecked_chunks = (flags & unchecked_chunks_flag) != 0;
    if ((flags & taken_flag) != 0) message.taken = taken;
    side.require(message.taken || taken == 0, Fault::bad_value, "reserved bytes are not zero");
  }
  const std::string_view fault = fault_of(message);
  side.require(fault.empty(), Fault::bad_value, fault);
}

std::vector<std::byte> encode(const Pull& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::pull, request_id);
}

Decoded<Pull> decode_pull(std::span<const std::byte> body) {
  return decode_fields<Pull>(body);
}

}  // namespace dpwa::wire
