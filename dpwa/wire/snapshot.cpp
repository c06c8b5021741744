#include <cmath>
#include <stdexcept>
#include <utility>

#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

constexpr std::uint8_t final_flag = 1;  // `final`, in the flags of the message

// SNAPSHOT and MAPPED both begin with:
//   offset size
//        0    8  version
//        8    8  lineage
//       16    8  clock, IEEE 754 binary64
//       24    8  loss, binary64, NaN = not known
//       32    8  push-sum weight, binary64
//       40    8  time of the publish, signed, microseconds since the epoch
template <typename Side>
void progress(Side& side, Of<Side, Progress>& progress) {
  side.field(progress.version);
  side.field(progress.lineage);
  side.field(progress.clock);
  side.field(progress.loss);
  side.field(progress.weight);
  side.field(progress.time_us);
}

// The fault in the values; empty when there is none. The loss may have any value; the guards of
// the interpolation handle it.
std::string_view progress_fault(const Progress& progress) {
  if (!std::isfinite(progress.clock) || progress.clock < 0) {
    return "clock of the snapshot is negative or not finite";
  }
  if (!std::isfinite(progress.weight) || progress.weight <= 0) {
    return "weight of the snapshot is not positive and finite";
  }
  return {};
}

// The fault in the values of a head; empty when there is none.
std::string_view fault_of(const SnapshotReplyHead& head) {
  if (const auto fault = progress_fault(head.progress); !fault.empty()) return fault;
  if (head.offset > max_snapshot_bytes || head.length > max_snapshot_bytes - head.offset) {
    return "range of the snapshot ends beyond 2^48 bytes";
  }
  if (!is_chunk_size(head.chunk_bytes)) {
    return "chunk size is not a multiple of 64 from 4 KiB to 16 MiB";
  }
  return {};
}

// Encoding never makes a payload longer, and a raw payload has exactly the length of the range.
bool may_carry(const SnapshotReplyHead& head, std::uint64_t payload_bytes) {
  return head.codec == Codec::raw ? payload_bytes == head.length : payload_bytes <= head.length;
}
constexpr std::string_view length_fault =
    "lengths in the head and in the header of the snapshot disagree";

// The fault in the values; empty when there is none.
std::string_view fault_of(const Mapped& message) {
  if (const auto fault = progress_fault(message.progress); !fault.empty()) return fault;
  const MemoryPlace& place = message.place;
  if (place.offset > max_snapshot_bytes || place.bytes > max_snapshot_bytes - place.offset) {
    return "range of the snapshot ends beyond 2^48 bytes";
  }
  if (place.mark == 0 || place.mark % 2 != 0) {
    return "generation of the memory is not that of a published snapshot";
  }
  if (place.memory >= max_shared_buffers) return "number of the memory is too high";
  return {};
}

}  // namespace

std::uint64_t snapshot_body_bytes(std::uint64_t length, std::uint32_t chunk_bytes,
                                  std::uint64_t payload_bytes) {
  const std::uint64_t chunks = length / chunk_bytes + (length % chunk_bytes != 0);
  return snapshot_head_bytes + chunks * chunk_header_bytes + payload_bytes;
}

std::uint64_t snapshot_body_bytes(std::uint64_t length, std::uint32_t chunk_bytes) {
  return snapshot_body_bytes(length, chunk_bytes, length);
}

std::vector<std::byte> encode(const SnapshotReplyHead& head, std::uint32_t request_id) {
  return encode(head, request_id, head.length);
}

// Head of SNAPSHOT
//   offset size
//        0   48  progress
//       48    8  offset of the range in the snapshot
//       56    8  length of the range
//       64    4  chunk size
//       68    1  state: 1 joining, 2 ready, 3 finished
//       69    1  codec: 1 raw, 2 fp16, 3 bf16, 4 int8
//       70    1  flags: bit 0 final, bit 7 without chunk checksums; the others 0
//       71   21  reserved, 0
//       92    4  CRC32C of bytes 0..91
template <typename Side>
void fields(Side& side, Of<Side, SnapshotReplyHead>& head) {
  auto flags = static_cast<std::uint8_t>((head.progress.final ? final_flag : 0) |
                                         (head.unchecked_chunks ? unchecked_chunks_flag : 0));
  progress(side, head.progress);
  side.field(head.offset);
  side.field(head.length);
  side.field(head.chunk_bytes);
  side.choice(head.state, NodeState::joining, NodeState::finished, "node state");
  side.choice(head.codec, Codec::raw, Codec::int8, "codec");
  side.field(flags);
  if constexpr (reads<Side>) {
    constexpr unsigned known_flags = final_flag | unchecked_chunks_flag;
    side.require((flags & ~known_flags) == 0, Fault::bad_value, "unknown flags in SNAPSHOT");
    head.progress.final = (flags & final_flag) != 0;
    head.unchecked_chunks = (flags & unchecked_chunks_flag) != 0;
  }
  side.reserved(21);
  const std::string_view fault = fault_of(head);
  side.require(fault.empty(), Fault::bad_value, fault);
}

std::vector<std::byte> encode(const SnapshotReplyHead& head, std::uint32_t request_id,
                              std::uint64_t payload_bytes) {
  Writer out;
  fields(out, head);
  out.require(may_carry(head, payload_bytes), Fault::bad_length, length_fault);
  out.checksum();
  const std::uint64_t body_bytes =
      snapshot_body_bytes(head.length, head.chunk_bytes, payload_bytes);
  return std::move(out).finish(MessageType::snapshot, request_id, body_bytes - snapshot_head_bytes);
}

Decoded<SnapshotReplyHead> decode_snapshot_head(
    std::span<const std::byte, snapshot_head_bytes> bytes, std::uint64_t body_bytes) {
  Reader in = Reader::checked(bytes);
  SnapshotReplyHead head;
  fields(in, head);
  if (in.failed()) return in.finish(head);
  const std::uint64_t least = snapshot_body_bytes(head.length, head.chunk_bytes, 0);
  in.require(body_bytes >= least && may_carry(head, body_bytes - least), Fault::bad_length,
             length_fault);
  return in.finish(head);
}

// Header of a chunk
//   offset size
//        0    4  payload length in bytes
//        4    4  CRC32C of the payload; 0 when the head says that there are no chunk checksums
std::array<std::byte, chunk_header_bytes> encode_chunk_header(const ChunkHeader& header) {
  std::array<std::byte, chunk_header_bytes> bytes{};
  auto* out = reinterpret_cast<unsigned char*>(bytes.data());
  boost::endian::store_little_u32(out, header.payload_bytes);
  boost::endian::store_little_u32(out + 4, header.crc);
  return bytes;
}

Decoded<ChunkHeader> decode_chunk_header(std::span<const std::byte, chunk_header_bytes> bytes,
                                         std::uint32_t expected_payload_bytes) {
  Reader in(bytes);
  ChunkHeader header;
  header.payload_bytes = in.u32();
  header.crc = in.u32();
  in.require(header.payload_bytes == expected_payload_bytes, Fault::bad_length,
             "length of a chunk is not what the head of the snapshot says");
  return in.finish(header);
}

// MAPPED
//   offset size
//        0   48  progress
//       48    8  offset of the range in the snapshot
//       56    8  length of the range
//       64    8  generation of the memory
//       72    4  number of the memory, below 64
//       76    1  state: 1 joining, 2 ready, 3 finished
//       77    1  flags: bit 0 final; the others 0
//       78   10  reserved, 0
//       88    4  CRC32C of bytes 0..87
template <typename Side>
void fields(Side& side, Of<Side, Mapped>& message) {
  std::uint8_t flags = message.progress.final ? final_flag : 0;
  progress(side, message.progress);
  side.field(message.place.offset);
  side.field(message.place.bytes);
  side.field(message.place.mark);
  side.field(message.place.memory);
  side.choice(message.state, NodeState::joining, NodeState::finished, "node state");
  side.field(flags);
  if constexpr (reads<Side>) {
    side.require(flags <= final_flag, Fault::bad_value, "unknown flags in MAPPED");
    message.progress.final = flags != 0;
  }
  side.reserved(10);
  const std::string_view fault = fault_of(message);
  side.require(fault.empty(), Fault::bad_value, fault);
}

std::vector<std::byte> encode(const Mapped& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::mapped, request_id);
}

Decoded<Mapped> decode_mapped(std::span<const std::byte> body) {
  return decode_fields<Mapped>(body);
}

// RELEASE
//   offset size
//        0    1  landed: 1 the snapshot was read in full and whole, 0 it was not
//        1    3  reserved, 0
//        4    4  CRC32C of bytes 0..3
template <typename Side>
void fields(Side& side, Of<Side, Release>& message) {
  side.flag(message.landed, "RELEASE");
  side.reserved(3);
}

std::vector<std::byte> encode(const Release& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::release, request_id);
}

Decoded<Release> decode_release(std::span<const std::byte> body) {
  return decode_fields<Release>(body);
}

// SHARE      u32 number; u64 bytes; u32 checksum. The descriptor of a memory file travels with it
template <typename Side>
void fields(Side& side, Of<Side, Share>& message) {
  side.field(message.number);
  side.field(message.bytes);
}

std::vector<std::byte> encode(const Share& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::share, request_id);
}

Decoded<Share> decode_share(std::span<const std::byte> body) {
  return decode_fields<Share>(body);
}

// SHARED     u32 number; u32 checksum
template <typename Side>
void fields(Side& side, Of<Side, Shared>& message) {
  side.field(message.number);
}

std::vector<std::byte> encode(const Shared& message, std::uint32_t request_id) {
  return encode_fields(message, MessageType::shared, request_id);
}

Decoded<Shared> decode_shared(std::span<const std::byte> body) {
  return decode_fields<Shared>(body);
}

}  // namespace dpwa::wire
