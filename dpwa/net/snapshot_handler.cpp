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

namespace dpwa {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;
using wire::MessageType;

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
    if (refusal->has_final && !requester.peer.empty() && !borrows_name(requester, *local_.members))
      local_.note_served(requester.peer, *refusal->has_final, pull);
    auto frame = encode(*refusal, request_id);
    co_return co_await responder.send(std::move(frame));
  }
  const auto& [snapshot, state, range] = std::get<PullGrant>(verdict);
  std::optional<StagingPool::Lease> staging;
  if (pull.codec != Codec::raw) {
    staging = staging_.lend(std::min<std::uint64_t>(pull.chunk_bytes, range.length));
    if (!staging) {
      auto frame = wire::encode_empty(MessageType::busy, request_id);
      co_return co_await responder.send(std::move(frame));
    }
  }

  wire::SnapshotReplyHead head;
  head.progress = snapshot->progress();
  head.state = state;
  head.codec = pull.codec;
  head.offset = range.offset;
  head.length = range.length;
  head.chunk_bytes = pull.chunk_bytes;
  head.unchecked_chunks = pull.unchecked_chunks && !local_.chunk_checksums;
  const Duration time = std::min<Duration>(std::chrono::milliseconds(pull.deadline_ms),
                                           options_.longest_reply(pull.full));
  const TimePoint begun = SteadyClock::now();
  const net::Deadline deadline(responder.executor(), begun + time,
                               [&responder] { responder.close(); });
  readers_.begin(requester.account);
  bool sent = false;
  const OnExit read([this, &requester, &sent, begun] {
    const TimePoint now = SteadyClock::now();
    readers_.end(requester.account, now - begun, sent, now);
  });
  co_await responder.begin_reply();
  const OnExit replied([&responder] { responder.end_reply(); });
  ServedChunks chunks(local_.manifest, snapshot, pull.codec, !head.unchecked_chunks,
                      std::move(staging));
  sent = co_await send(std::move(chunks), head, request_id, responder);
  if (sent && !requester.peer.empty() && !borrows_name(requester, *local_.members))
    local_.note_served(requester.peer, head.progress, pull);
  co_return sent;
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
  ++local_.traffic.snapshots_served;
  co_return true;
}

}  // namespace dpwa
