#include "dpwa/net/reply_reader.h"

#include <algorithm>
#include <utility>

#include "dpwa/base/checksum.h"
#include "dpwa/snapshot/byte_range.h"
#include "dpwa/snapshot/encoded_chunk.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

namespace asio = boost::asio;
using wire::MessageType;

namespace {

// The staging buffer is laid out so that a chunk's payload starts on a cache line:
//   [0, pad) unused | reply lead (header, head, first chunk header) | payload at payload_offset
constexpr std::size_t payload_offset = (ReplyReader::reply_lead_bytes + 63) / 64 * 64;
constexpr std::size_t lead_offset = payload_offset - ReplyReader::reply_lead_bytes;

// Fewer bytes are not worth a turn of the reactor.
constexpr std::size_t least_read_bytes = std::size_t{64} << 10;

constexpr std::size_t line_bytes = 64;  // no element crosses such a boundary

// Takes in one chunk of a reply as it arrives: what one read brought is read for the checksum and
// landed while it is in the second-level cache. Smaller parts cost more than a nearer cache gains.
// The landed bytes may be used only when checksum() matches. An encoded chunk is landed when it is
// complete.
class ChunkIntake {
 public:
  // `payload`: where the chunk arrives, all of it; outlives this. `checked`: it has a checksum.
  ChunkIntake(Landing& landing, Codec codec, ByteRange chunk, std::span<const std::byte> payload,
              bool checked);

  // The first `bytes` of the payload are there, no fewer than at the last call.
  void arrived(std::size_t bytes);
  // The checksum of the whole payload, once it has arrived; 0 for a chunk that is not checked.
  std::uint32_t checksum() const { return checked_ ? checksum_.value() : 0; }

 private:
  Landing& landing_;
  const Codec codec_;
  const ByteRange chunk_;
  const std::span<const std::byte> payload_;
  const bool checked_;
  std::size_t taken_ = 0;
  Crc32c checksum_;
};

ChunkIntake::ChunkIntake(Landing& landing, Codec codec, ByteRange chunk,
                         std::span<const std::byte> payload, bool checked)
    : landing_(landing), codec_(codec), chunk_(chunk), payload_(payload), checked_(checked) {}

void ChunkIntake::arrived(std::size_t bytes) {
  const bool whole = bytes == payload_.size();
  if (codec_ != Codec::raw) {
    if (!whole || taken_ == bytes) return;
    if (checked_) checksum_.update(payload_);
    landing_.consume(codec_, chunk_, payload_);
    taken_ = bytes;
    return;
  }
  const std::size_t usable = whole ? bytes : bytes / line_bytes * line_bytes;
  if (usable == taken_) return;
  const auto part = payload_.subspan(taken_, usable - taken_);
  if (checked_) checksum_.update(part);
  landing_.consume(chunk_.offset + taken_, part);
  taken_ = usable;
}

std::string words_for(ByteRange range, std::uint32_t chunk_bytes, Codec codec) {
  return std::to_string(range.length) + " bytes from byte " + std::to_string(range.offset) +
         " in chunks of " + std::to_string(chunk_bytes) + " as " + std::string(name_of(codec));
}

}  // namespace

AlignedBuffer ReplyReader::make_staging(std::size_t chunk_bytes) {
  return AlignedBuffer(payload_offset + chunk_bytes);
}

std::span<std::byte> ReplyReader::payload() const {
  return staging_.bytes().subspan(payload_offset);
}

std::uint32_t ReplyReader::chunk_bytes() const {
  return static_cast<std::uint32_t>(payload().size());
}

asio::awaitable<PullResult> ReplyReader::read_head(PullRequest request, std::uint32_t request_id) {
  const ByteRange asked = request.range;
  const auto window = staging_.bytes().subspan(lead_offset);  // lead and first payload
  // The first of several encoded chunks leaves room in the window, not to be filled by the second.
  const auto lead_and_chunk =
      asked.length <= chunk_bytes()
          ? window
          : window.first(reply_lead_bytes +
                         payload_bytes(manifest_, request.codec, {asked.offset, chunk_bytes()}));
  const auto first = co_await stream_.read_some(lead_and_chunk, wire::header_bytes);
  if (!first) co_return failed(first.error());
  std::size_t buffered = *first;

  const std::uint64_t max_body = wire::snapshot_body_bytes(asked.length, wire::min_chunk_bytes);
  const auto header = wire::decode_header(window.first<wire::header_bytes>(), max_body);
  if (!header) co_return failed(header.error());
  if (header->request_id != request_id) {
    co_return failed(PeerFailure::protocol, "answered another request");
  }
  const bool is_snapshot = header->type == MessageType::snapshot;
  const std::size_t wanted =
      wire::header_bytes +
      (is_snapshot ? wire::snapshot_head_bytes : static_cast<std::size_t>(header->body_bytes));
  if (wanted > window.size()) {
    co_return failed(PeerFailure::protocol, "sent a reply that does not belong to a pull");
  }
  if (buffered < wanted) {
    const auto target = (is_snapshot ? lead_and_chunk : window).subspan(buffered);
    const auto more = co_await stream_.read_some(target, wanted - buffered);
    if (!more) co_return failed(more.error());
    buffered += *more;
  }
  const auto body = window.subspan(wire::header_bytes, wanted - wire::header_bytes);
  if (!is_snapshot && buffered > wanted) {
    co_return failed(PeerFailure::protocol, "sent bytes that were not asked for");
  }
  if (!is_snapshot) co_return declined(header->type, body);

  const auto head =
      wire::decode_snapshot_head(body.first<wire::snapshot_head_bytes>(), header->body_bytes);
  if (!head) co_return failed(head.error());
  if (ByteRange{head->offset, head->length} != asked || head->chunk_bytes != chunk_bytes() ||
      head->codec != request.codec) {
    co_return failed(
        PeerFailure::protocol,
        "sent " + words_for({head->offset, head->length}, head->chunk_bytes, head->codec) +
            " where " + words_for(asked, chunk_bytes(), request.codec) + " were asked for");
  }
  const std::uint64_t body_bytes = wire::snapshot_body_bytes(
      asked.length, chunk_bytes(), payload_bytes(manifest_, request.codec, asked, chunk_bytes()));
  if (header->body_bytes != body_bytes) {
    co_return failed(PeerFailure::protocol, "sent a body of " + std::to_string(header->body_bytes) +
                                                " bytes where " + std::to_string(body_bytes) +
                                                " were expected");
  }
  if (head->unchecked_chunks && !request.unchecked_chunks) {
    co_return failed(PeerFailure::protocol, "left out the checksums that were asked for");
  }
  head_ = *head;
  buffered_ = buffered - wire::header_bytes - wire::snapshot_head_bytes;
  PullResult result;
  result.progress = head_.progress;
  co_return result;
}

asio::awaitable<PullResult> ReplyReader::land(Landing& landing) {
  const auto staging = staging_.bytes();
  const wire::SnapshotReplyHead head = head_;
  PullResult result;
  result.progress = head.progress;
  const auto broken = [&result](const net::Failure& failure) {
    PullResult end = failed(failure);
    end.bytes = result.bytes;
    return end;
  };
  // `have` counts the bytes read of the current chunk, including its header.
  std::size_t have = buffered_;
  for (std::uint64_t at = 0; at < head.length;) {
    const ByteRange part{head.offset + at,
                         std::min<std::uint64_t>(head.chunk_bytes, head.length - at)};
    const auto expected = static_cast<std::uint32_t>(payload_bytes(manifest_, head.codec, part));
    const auto chunk = staging.subspan(payload_offset - wire::chunk_header_bytes,
                                       wire::chunk_header_bytes + expected);
    ChunkIntake intake(landing, head.codec, part, chunk.subspan(wire::chunk_header_bytes),
                       !head.unchecked_chunks);
    if (have > chunk.size()) {
      result.failure = PeerFailure::protocol;
      result.detail = "sent more bytes than it announced";
      co_return result;
    }
    while (true) {
      if (have >= wire::chunk_header_bytes) intake.arrived(have - wire::chunk_header_bytes);
      if (have == chunk.size()) break;
      const std::size_t least = std::min(chunk.size() - have, least_read_bytes);
      const auto more = co_await stream_.read_some(chunk.subspan(have), least);
      if (!more) co_return broken(more.error());
      have += *more;
    }
    const auto header =
        wire::decode_chunk_header(chunk.first<wire::chunk_header_bytes>(), expected);
    if (!header) co_return broken(header.error());
    if (intake.checksum() != header->crc) {
      result.failure = PeerFailure::protocol;
      result.detail = "sent a chunk with a wrong checksum at byte " + std::to_string(at);
      co_return result;
    }
    at += part.length;
    have = 0;
    result.bytes += expected;
  }
  co_return result;
}

}  // namespace dpwa
