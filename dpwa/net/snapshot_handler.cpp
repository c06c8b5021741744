#include "dpwa/net/snapshot_handler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "dpwa/base/checksum.h"
#include "dpwa/base/invariant.h"
#include "dpwa/base/on_exit.h"
#include "dpwa/net/admission.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/node_handlers.h"
#include "dpwa/snapshot/encoded_chunk.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;
using wire::MessageType;

namespace {

// A node of the file may call from another of its addresses: who has the key of the cluster is
// believed.
bool is_itself(const Requester& requester, const LocalNode& local) {
  if (requester.peer.empty()) return false;
  return local.security != nullptr || !borrows_name(requester, *local.members);
}

}  // namespace

ServedChunks::ServedChunks(const Manifest& manifest, std::shared_ptr<const Snapshot> snapshot,
                           Codec codec, bool checksums, std::optional<StagingPool::Lease> staging)
    : manifest_(manifest),
      snapshot_(std::move(snapshot)),
      codec_(codec),
      checksums_(checksums),
      staging_(std::move(staging)) {
  DPWA_INVARIANT(codec_ == Codec::raw || staging_, "an encoded reply has a buffer for its chunks",
                 codec_);
}

ServedChunks::Chunk ServedChunks::get(ByteRange chunk) {
  if (codec_ == Codec::raw) {
    return {snapshot_->bytes().subspan(chunk.offset, chunk.length),
            checksums_ ? snapshot_->chunk_checksum(chunk.offset, chunk.length) : 0};
  }
  const auto payload = staging_->bytes().first(payload_bytes(manifest_, codec_, chunk));
  encode_chunk(manifest_, codec_, snapshot_->bytes(), chunk, payload);
  return {payload, checksums_ ? crc32c(payload) : 0};
}

std::vector<wire::TypeBound> SnapshotHandler::requests(const Requester& requester) const {
  if (!requester.peer.empty() && !requester.moves_parameters) return {};
  return {{MessageType::pull, wire::max_body_bytes(MessageType::pull)}};
}

asio::awaitable<bool> SnapshotHandler::answer(net::Frame request, Responder& responder) {
  const std::uint32_t request_id = request.header.request_id;
  const auto decoded = wire::decode_pull(request.body);
  if (!decoded) {
    responder.protocol_error(decoded.error().detail);
    co_return false;
  }
  const wire::Pull& pull = *decoded;
  const Requester& requester = responder.requester();
  // From any caller with this name: a statement can only make this node ask the peer more often.
  if (pull.taken && !requester.peer.empty())
    local_.statements.put(requester.peer, {requester.incarnation, *pull.taken});
  const TimePoint asked = SteadyClock::now();
  const bool busy = !readers_.may_begin(requester.account, asked);
  const auto verdict = examine_pull(pull, local_, busy, asked);
  if (const auto* refusal = std::get_if<PullRefusal>(&verdict)) {
    if (refusal->has_final && is_itself(requester, local_))
      local_.note_served(requester.peer, *refusal->has_final, pull);
    auto frame = encode(*refusal, request_id);
    co_return co_await responder.send(std::move(frame));
  }
  const auto& grant = std::get<PullGrant>(verdict);
  const bool lends = pull.may_map && requester.may_map;
  std::optional<StagingPool::Lease> staging;
  if (pull.codec != Codec::raw && !lends) {
    staging = staging_.lend(std::min<std::uint64_t>(pull.chunk_bytes, grant.range.length));
    if (!staging) {
      auto frame = wire::encode_empty(MessageType::busy, request_id);
      co_return co_await responder.send(std::move(frame));
    }
  }

  const Duration time = std::min<Duration>(std::chrono::milliseconds(pull.deadline_ms),
                                           options_.longest_reply(pull.full));
  const TimePoint begun = SteadyClock::now();
  const net::Deadline deadline(responder.executor(), begun + time, [this, lends, &responder] {
    if (lends) ++local_.traffic.same_host_leases_expired;
    responder.close();
  });
  readers_.begin(requester.account);
  bool whole = false;
  const OnExit read([this, &requester, &whole, begun] {
    const TimePoint now = SteadyClock::now();
    readers_.end(requester.account, now - begun, whole, now);
  });
  co_await responder.begin_reply();
  const OnExit replied([&responder] { responder.end_reply(); });
  bool landed = false;
  if (lends) {
    const auto released = co_await lend(grant, request_id, responder);
    whole = released.has_value();
    landed = whole && released->landed;
  } else {
    wire::SnapshotReplyHead head;
    head.progress = grant.snapshot->progress();
    head.state = grant.state;
    head.codec = pull.codec;
    head.offset = grant.range.offset;
    head.length = grant.range.length;
    head.chunk_bytes = pull.chunk_bytes;
    head.unchecked_chunks = pull.unchecked_chunks && !local_.chunk_checksums;
    ServedChunks chunks(local_.manifest, grant.snapshot, pull.codec, !head.unchecked_chunks,
                        std::move(staging));
    whole = landed = co_await send(std::move(chunks), head, request_id, responder);
  }
  if (!landed) co_return whole;
  ++local_.traffic.snapshots_served;
  if (lends) {
    ++local_.traffic.same_host_served;
    local_.traffic.bytes_served +=
        payload_bytes(local_.manifest, pull.codec, grant.range, pull.chunk_bytes);
  }
  if (is_itself(requester, local_))
    local_.note_served(requester.peer, grant.snapshot->progress(), pull);
  co_return whole;
}

asio::awaitable<std::optional<wire::Release>> SnapshotHandler::lend(const PullGrant& grant,
                                                                    std::uint32_t request_id,
                                                                    Responder& responder) {
  const Snapshot& snapshot = *grant.snapshot;
  const MemoryPlace place{snapshot.buffer(), grant.range.offset, grant.range.length,
                          snapshot.file()->generation()};
  const auto frame =
      wire::encode(wire::Mapped{snapshot.progress(), grant.state, place}, request_id);
  const std::array<asio::const_buffer, 1> buffers{asio::buffer(frame)};
  const bool written = co_await responder.write(buffers);
  if (!written) co_return std::nullopt;
  const net::Expected expected(net::types(MessageType::release));
  const auto answer = co_await responder.receive(expected);
  if (!answer) co_return std::nullopt;
  const auto release = wire::decode_release(answer->body);
  if (release && answer->header.request_id == request_id) co_return *release;
  responder.protocol_error(release ? "RELEASE of another PULL" : release.error().detail);
  co_return std::nullopt;
}

asio::awaitable<bool> SnapshotHandler::send(ServedChunks chunks, wire::SnapshotReplyHead head,
                                            std::uint32_t request_id, Responder& responder) {
  const ByteRange range{head.offset, head.length};
  const auto lead = wire::encode(
      head, request_id, payload_bytes(local_.manifest, head.codec, range, head.chunk_bytes));
  std::size_t lead_bytes = lead.size();  // frame header and head leave with the first chunk
  for (std::uint64_t at = 0; at < range.length || lead_bytes > 0;) {
    const auto size = std::min<std::uint64_t>(head.chunk_bytes, range.length - at);
    const ServedChunks::Chunk chunk = chunks.get({range.offset + at, size});
    const wire::ChunkHeader description{static_cast<std::uint32_t>(chunk.payload.size()),
                                        chunk.crc};
    const auto chunk_header = wire::encode_chunk_header(description);
    const std::array<asio::const_buffer, 3> buffers{
        asio::buffer(lead.data(), lead_bytes),
        asio::buffer(chunk_header.data(), size == 0 ? 0 : chunk_header.size()),
        asio::buffer(chunk.payload.data(), chunk.payload.size())};
    const bool written = co_await responder.write(buffers);
    if (!written) co_return false;
    local_.traffic.bytes_served += asio::buffer_size(buffers);
    at += size;
    lead_bytes = 0;
  }
  co_return true;
}

}  // namespace dpwa
