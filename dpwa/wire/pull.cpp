#include <stdexcept>
#include <utility>

#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

constexpr std::uint8_t full_flag = 1;
constexpr std::uint8_t final_average_flag = 2;
constexpr std::uint8_t taken_flag = 4;

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
//                bit 7 without chunk checksums; the others 0
//       34    2  what the caller has taken of this node; without bit 2: 0
//       36    4  CRC32C of bytes 0..35
std::vector<std::byte> encode(const Pull& message, std::uint32_t request_id) {
  if (const auto fault = fault_of(message); !fault.empty()) {
    throw std::invalid_argument(std::string(fault));
  }
  Writer out;
  out.u64(message.known_version);
  out.u64(message.offset);
  out.u64(message.length);
  out.u32(message.deadline_ms);
  out.u32(message.chunk_bytes);
  out.u8(static_cast<std::uint8_t>(message.codec));
  out.u8(static_cast<std::uint8_t>(
      (message.full ? full_flag : 0) | (message.for_final_average ? final_average_flag : 0) |
      (message.taken ? taken_flag : 0) | (message.unchecked_chunks ? unchecked_chunks_flag : 0)));
  out.u16(message.taken.value_or(0));
  out.checksum();
  return std::move(out).finish(MessageType::pull, request_id);
}

Decoded<Pull> decode_pull(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Pull message;
  message.known_version = in.u64();
  message.offset = in.u64();
  message.length = in.u64();
  message.deadline_ms = in.u32();
  message.chunk_bytes = in.u32();
  message.codec = in.choice(Codec::raw, Codec::int8, "codec");
  const std::uint8_t flags = in.u8();
  constexpr unsigned known_flags =
      full_flag | final_average_flag | taken_flag | unchecked_chunks_flag;
  in.require((flags & ~known_flags) == 0, Fault::bad_value, "unknown flags in PULL");
  message.full = (flags & full_flag) != 0;
  message.for_final_average = (flags & final_average_flag) != 0;
  message.unchecked_chunks = (flags & unchecked_chunks_flag) != 0;
  if ((flags & taken_flag) != 0) {
    message.taken = in.u16();
  } else {
    in.reserved(2);
  }
  const std::string_view fault = fault_of(message);
  in.require(fault.empty(), Fault::bad_value, fault);
  return in.finish(std::move(message));
}

}  // namespace dpwa::wire
