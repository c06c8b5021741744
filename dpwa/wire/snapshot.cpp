#include <stdexcept>
#include <utility>

#include "dpwa/wire/messages.h"
#include "dpwa/wire/progress.h"

namespace dpwa::wire {
namespace {

// What is wrong with the values of a head; empty when nothing is.
std::string_view fault_of(const SnapshotHead& head) {
  if (const auto fault = progress_fault(head.progress); !fault.empty()) return fault;
  if (head.offset > max_snapshot_bytes || head.length > max_snapshot_bytes - head.offset) {
    return "range of the snapshot ends beyond 2^48 bytes";
  }
  if (!is_chunk_size(head.chunk_bytes)) {
    return "chunk size is not a multiple of 64 from 4 KiB to 16 MiB";
  }
  return {};
}

// Nothing grows by being encoded, and raw bytes do not shrink either.
bool may_carry(const SnapshotHead& head, std::uint64_t payload_bytes) {
  return head.codec == Codec::raw ? payload_bytes == head.length : payload_bytes <= head.length;
}
constexpr std::string_view length_fault =
    "lengths in the head and in the header of the snapshot disagree";

}  // namespace

std::uint64_t snapshot_body_bytes(std::uint64_t length, std::uint32_t chunk_bytes,
                                  std::uint64_t payload_bytes) {
  const std::uint64_t chunks = length / chunk_bytes + (length % chunk_bytes != 0);
  return snapshot_head_bytes + chunks * chunk_header_bytes + payload_bytes;
}

std::uint64_t snapshot_body_bytes(std::uint64_t length, std::uint32_t chunk_bytes) {
  return snapshot_body_bytes(length, chunk_bytes, length);
}

std::vector<std::byte> encode(const SnapshotHead& head, std::uint32_t request_id) {
  return encode(head, request_id, head.length);
}

// Head of SNAPSHOT
//   offset size
//        0   48  progress (progress.h)
//       48    8  offset of the range in the snapshot
//       56    8  length of the range
//       64    4  chunk size
//       68    1  state: 1 joining, 2 ready, 3 finished
//       69    1  codec: 1 raw, 2 fp16, 3 bf16, 4 int8
//       70    1  flags: bit 0 final, bit 7 without chunk checksums; the others 0
//       71   21  reserved, 0
//       92    4  CRC32C of bytes 0..91
std::vector<std::byte> encode(const SnapshotHead& head, std::uint32_t request_id,
                              std::uint64_t payload_bytes) {
  if (const auto fault = fault_of(head); !fault.empty()) {
    throw std::invalid_argument(std::string(fault));
  }
  if (!may_carry(head, payload_bytes)) throw std::invalid_argument(std::string(length_fault));
  Writer out;
  write_progress(out, head.progress);
  out.u64(head.offset);
  out.u64(head.length);
  out.u32(head.chunk_bytes);
  out.u8(static_cast<std::uint8_t>(head.state));
  out.u8(static_cast<std::uint8_t>(head.codec));
  out.u8(static_cast<std::uint8_t>((head.progress.final ? final_flag : 0) |
                                   (head.unchecked_chunks ? unchecked_chunks_flag : 0)));
  out.reserved(21);
  out.checksum();
  const std::uint64_t body_bytes =
      snapshot_body_bytes(head.length, head.chunk_bytes, payload_bytes);
  return std::move(out).finish(MessageType::snapshot, request_id, body_bytes - snapshot_head_bytes);
}

Decoded<SnapshotHead> decode_snapshot_head(std::span<const std::byte, snapshot_head_bytes> bytes,
                                           std::uint64_t body_bytes) {
  Reader in = Reader::checked(bytes);
  SnapshotHead head;
  head.progress = read_progress(in);
  head.offset = in.u64();
  head.length = in.u64();
  head.chunk_bytes = in.u32();
  head.state = in.choice(NodeState::joining, NodeState::finished, "node state");
  head.codec = in.choice(Codec::raw, Codec::int8, "codec");
  const std::uint8_t flags = in.u8();
  constexpr unsigned known_flags = final_flag | unchecked_chunks_flag;
  in.require((flags & ~known_flags) == 0, Fault::bad_value, "unknown flags in SNAPSHOT");
  head.progress.final = (flags & final_flag) != 0;
  head.unchecked_chunks = (flags & unchecked_chunks_flag) != 0;
  in.reserved(21);
  if (in.failed()) return in.finish(head);
  const std::string_view fault = fault_of(head);
  in.require(fault.empty(), Fault::bad_value, fault);
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

}  // namespace dpwa::wire
