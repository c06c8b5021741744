#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/rules/member.h"
#include "dpwa/rules/progress.h"
#include "dpwa/snapshot/loan.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/wire/frame.h"
#include "interpolation/kernels/codec.h"

namespace dpwa::wire {

// Bodies of the messages, as values. Each encode() gives the whole frame (header, body, and the
// CRC32C of the body as its last four bytes). Each decode takes the body, checks that checksum,
// every length and every value, and must consume all of the body. Strings are u16 length + UTF-8
// bytes. docs/PROTOCOL.md gives every layout byte by byte, and so does the block above each codec.
// All functions are pure and thread-safe. encode() throws std::invalid_argument for a message that
// no peer would accept (names and lengths over their bound, clock not finite, ...); it repairs the
// reasons of REJECT and ERROR instead. A decode never throws, whatever the bytes.

enum class Role : std::uint8_t { node = 1, observer = 2 };
enum class NodeState : std::uint8_t { joining = 1, ready = 2, finished = 3 };
using dpwa::Codec;
enum class RejectCode : std::uint16_t {
  version = 1,
  cluster = 2,
  unknown_node = 3,
  model = 4,
  own_name = 5,  // the caller bears this node's name
  security = 6,
};

inline constexpr std::size_t max_name_bytes = 255;
inline constexpr std::size_t max_offer_bytes = 255;
inline constexpr std::size_t max_reason_bytes = 1024;
inline constexpr std::size_t max_status_bytes = 1 << 20;
inline constexpr std::uint32_t max_record_ms = 60'000;
inline constexpr std::uint32_t min_chunk_bytes = 4 << 10;
inline constexpr std::uint32_t max_chunk_bytes = 16 << 20;
inline constexpr std::uint32_t chunk_alignment = 64;
// Capability bit, above those of the codecs: chunks may travel without checksums. It is for links
// that are trusted to keep bytes intact, and nodes set it when they are configured so.
inline constexpr std::uint32_t unchecked_chunks_capability = 1u << 31;
// The same in the flags of PULL and of SNAPSHOT_HEAD.
inline constexpr std::uint8_t unchecked_chunks_flag = 0x80;
// Capability bit: MEMBERS is understood.
inline constexpr std::uint32_t members_capability = 1u << 30;
// Capability bit: the node keeps the accounts of pairs of nodes even (rules/pair_ledger.h).
inline constexpr std::uint32_t ledger_capability = 1u << 29;
inline constexpr std::size_t max_member_entries = 128;
inline constexpr std::size_t max_member_addresses = 4;
inline constexpr std::uint32_t max_refutation = 1u << 31;
constexpr bool is_chunk_size(std::uint32_t bytes) {
  return bytes >= min_chunk_bytes && bytes <= max_chunk_bytes && bytes % chunk_alignment == 0;
}

// Capabilities: bit c set = codec c is understood.
constexpr std::uint32_t capability(Codec codec) {
  return std::uint32_t{1} << static_cast<unsigned>(codec);
}
inline constexpr std::uint32_t all_codecs = capability(Codec::raw) | capability(Codec::fp16) |
                                            capability(Codec::bf16) | capability(Codec::int8);

struct Hello {
  Role role = Role::node;
  // The bits of the codecs that are understood, and the three bits above.
  std::uint32_t capabilities = 0;
  std::string cluster;
  std::string node;  // empty for an observer
  std::uint64_t incarnation = 0;
  Fingerprint fingerprint{};  // zero for an observer
};

struct Welcome {
  std::string node;
  std::uint64_t incarnation = 0;
  std::uint32_t capabilities = 0;
  NodeState state = NodeState::joining;
  std::uint64_t lineage = 0;  // of the latest snapshot; 0 = none yet
  double clock = 0;           // of the latest snapshot
  std::string same_host{};  // where to have snapshots as memory (same_host/offer.h); empty: nowhere
};

struct Reject {
  RejectCode code = RejectCode::version;
  std::string reason;  // one line, for the peer's log
};

// Asks for bytes [offset, offset + length) of the snapshot. length 0: to the end of what an
// ordinary pull moves; `full`: everything, frozen parameters included.
struct Pull {
  std::uint64_t known_version = 0;  // answer NOT_MODIFIED if still current; 0 = none known
  Codec codec = Codec::raw;
  bool full = false;
  bool for_final_average = false;  // the caller has finished; it will not ask again
  bool unchecked_chunks = false;   // leave the checksums out; only if both have the capability
  bool may_map = false;  // MAPPED is an answer, too: the caller has mapped this node's memory
  // The factors with which the caller has blended this node (PairLedger::stated_to()); only if both
  // have the capability.
  std::optional<std::uint16_t> taken{};
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t deadline_ms = 0;          // how long the caller will wait: the server gives up then
  std::uint32_t chunk_bytes = 512 << 10;  // of the reply: a multiple of 64, from 4 KiB to 16 MiB
};

// Leads a SNAPSHOT body. It is followed by ceil(length / chunk_bytes) chunks, each
//   u32 payload length, u32 CRC32C of the payload, payload
// where every chunk but the last stands for chunk_bytes of the snapshot, and its payload is those
// bytes (raw) or their encoded form, never longer. The body length covers head and chunks.
struct SnapshotReplyHead {
  Progress progress;
  NodeState state = NodeState::ready;
  Codec codec = Codec::raw;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t chunk_bytes = 0;  // as in Pull
  bool unchecked_chunks = false;  // the chunks carry 0 for a checksum
};
inline constexpr std::size_t snapshot_head_bytes = 96;  // its checksum included
inline constexpr std::size_t chunk_header_bytes = 8;

struct ChunkHeader {
  std::uint32_t payload_bytes = 0;
  std::uint32_t crc = 0;
};

// Answers a PULL of another process of this host: the place in memory takes the place of chunks.
struct Mapped {
  Progress progress;
  NodeState state = NodeState::ready;
  // Of the range in a memory below max_shared_buffers. Its mark, the generation, is even, above 0.
  MemoryPlace place{.mark = 2};
};
inline constexpr std::uint32_t max_shared_buffers = 64;

// The caller no longer needs the memory of the last MAPPED.
struct Release {
  bool landed = false;  // it has read the whole snapshot, and it was intact
};

// A memory file, whose descriptor comes with this message, between the two ends of a connection of
// one host. The answer, once it is mapped, is SHARED. Each end counts its own files.
struct Share {
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
};
struct Shared {
  std::uint32_t number = 0;
};

// NOT_READY, NOT_MODIFIED, NOT_FRESH, BUSY, MANIFEST_REQUEST, STATUS_REQUEST have no fields.
struct Status {
  std::string json;  // one JSON object on one line: for people and dashboards
};
// Asks for the spans of a process from number `from` on (base/trace.h). With a time it records anew
// for so long, and the answer has none.
struct TraceRequest {
  std::uint64_t from = 0;
  std::uint32_t record_ms = 0;
};
struct Error {
  std::string reason;
};

std::vector<std::byte> encode(const Hello& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Welcome& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Reject& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Pull& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Status& message, std::uint32_t request_id);
std::vector<std::byte> encode(const TraceRequest& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Error& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Manifest& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Mapped& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Release& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Share& message, std::uint32_t request_id);
std::vector<std::byte> encode(const Shared& message, std::uint32_t request_id);
std::vector<std::byte> encode(const MemberExchange& message, std::uint32_t request_id);
std::vector<std::byte> encode_empty(MessageType type, std::uint32_t request_id);

// Frame header and head of a SNAPSHOT, without its chunks, whose payloads have `payload_bytes` in
// all: head.length with the raw codec.
std::vector<std::byte> encode(const SnapshotReplyHead& head, std::uint32_t request_id,
                              std::uint64_t payload_bytes);
std::vector<std::byte> encode(const SnapshotReplyHead& head, std::uint32_t request_id);  // raw
std::uint64_t snapshot_body_bytes(std::uint64_t length, std::uint32_t chunk_bytes,
                                  std::uint64_t payload_bytes);
std::uint64_t snapshot_body_bytes(std::uint64_t length, std::uint32_t chunk_bytes);  // raw
std::array<std::byte, chunk_header_bytes> encode_chunk_header(const ChunkHeader& header);

Decoded<Hello> decode_hello(std::span<const std::byte> body);
Decoded<Welcome> decode_welcome(std::span<const std::byte> body);
Decoded<Reject> decode_reject(std::span<const std::byte> body);
Decoded<Pull> decode_pull(std::span<const std::byte> body);
Decoded<Status> decode_status(std::span<const std::byte> body);
Decoded<TraceRequest> decode_trace_request(std::span<const std::byte> body);
Decoded<Error> decode_error(std::span<const std::byte> body);
Decoded<Manifest> decode_manifest(std::span<const std::byte> body);
Decoded<Mapped> decode_mapped(std::span<const std::byte> body);
Decoded<Release> decode_release(std::span<const std::byte> body);
Decoded<Share> decode_share(std::span<const std::byte> body);
Decoded<Shared> decode_shared(std::span<const std::byte> body);
Decoded<MemberExchange> decode_members(std::span<const std::byte> body);
// Why MEMBERS cannot carry a claim; empty when it can. A decoded claim has no fault.
std::string_view fault_of(const MemberClaim& claim);
// `head` holds the first snapshot_head_bytes of the body, `body_bytes` is the whole body's length
// from the frame header: both must agree. With a codec other than raw this checks only a bound,
// because the exact length depends on the manifest. The caller checks it.
Decoded<SnapshotReplyHead> decode_snapshot_head(
    std::span<const std::byte, snapshot_head_bytes> head, std::uint64_t body_bytes);
// `expected_payload_bytes`: the length that the head gives for this chunk.
Decoded<ChunkHeader> decode_chunk_header(std::span<const std::byte, chunk_header_bytes> bytes,
                                         std::uint32_t expected_payload_bytes);
// A message without fields: the body is its checksum alone.
Decoded<bool> decode_empty(std::span<const std::byte> body);

}  // namespace dpwa::wire
