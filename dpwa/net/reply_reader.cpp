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

// In the staging buffer, so that the payload of a chunk starts on a cache line. The header of the
// chunk comes right before it.
constexpr std::size_t payload_offset = 64;

constexpr std::size_t line_bytes = 64;  // no element crosses such a boundary

// Takes in one chunk of a reply as it arrives: what one read brought is checked and landed while it
// is in the second-level cache, in one pass where the processor can. Smaller parts cost more than a
// nearer cache gains. The landed bytes may be used only when checksum() matches. An encoded chunk
// is landed when it is complete.
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
    landing_.consume(codec_, chunk_, payload_, checked_ ? &checksum_ : nullptr);
    taken_ = bytes;
    return;
  }
  const std::size_t usable = whole ? bytes : bytes / line_bytes * line_bytes;
  if (usable == taken_) return;
  const auto part = payload_.subspan(taken_, usable - taken_);
  landing_.consume(chunk_.offset + taken_, part, checked_ ? &checksum_ : nullptr);
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

wire::TypeSet ReplyReader::answers() {
  return net::types(MessageType::snapshot, MessageType::not_modified, MessageType::not_fresh,
                    MessageType::not_ready, MessageType::busy, MessageType::reject,
                    MessageType::error);
}

std::uint64_t ReplyReader::most_snapshot_bytes(const PullRequest& request) {
  return wire::snapshot_body_bytes(request.range.length, wire::min_chunk_bytes);
}

PullResult ReplyReader::take_head(const PullRequest& request, const net::Frame& reply) {
  const ByteRange asked = request.range;
  const wire::FrameHeader& header = reply.header;
  if (header.type != MessageType::snapshot) return declined(header.type, reply.body);

  const auto body = std::span(reply.body).first<wire::snapshot_head_bytes>();
  const auto head = wire::decode_snapshot_head(body, header.body_bytes);
  if (!head) return failed(head.error());
  if (ByteRange{head->offset, head->length} != asked || head->chunk_bytes != chunk_bytes() ||
      head->codec != request.codec) {
    return failed(
        PeerFailure::protocol,
        "sent " + words_for({head->offset, head->length}, head->chunk_bytes, head->codec) +
            " where " + words_for(asked, chunk_bytes(), request.codec) + " were asked for");
  }
  const std::uint64_t body_bytes = wire::snapshot_body_bytes(
      asked.length, chunk_bytes(), payload_bytes(manifest_, request.codec, asked, chunk_bytes()));
  if (header.body_bytes != body_bytes) {
    return failed(PeerFailure::protocol, "sent a body of " + std::to_string(header.body_bytes) +
                                             " bytes where " + std::to_string(body_bytes) +
                                             " were expected");
  }
  if (head->unchecked_chunks && !request.unchecked_chunks) {
    return failed(PeerFailure::protocol, "left out the checksums that were asked for");
  }
  head_ = *head;
  PullResult result;
  result.progress = head_.progress;
  return result;
}

asio::awaitable<PullResult> ReplyReader::land(Landing& landing) {
  const wire::SnapshotReplyHead head = head_;
  net::Incoming& incoming = connection_.incoming();
  PullResult result;
  result.progress = head.progress;
  const auto broken = [&result](const net::Failure& failure) {
    PullResult end = failed(failure);
    end.bytes = result.bytes;
    return end;
  };
  for (std::uint64_t at = 0; at < head.length;) {
    const ByteRange part{head.offset + at,
                         std::min<std::uint64_t>(head.chunk_bytes, head.length - at)};
    const auto expected = static_cast<std::uint32_t>(payload_bytes(manifest_, head.codec, part));
    const auto chunk = staging_.bytes().subspan(payload_offset - wire::chunk_header_bytes,
                                                wire::chunk_header_bytes + expected);
    ChunkIntake intake(landing, head.codec, part, chunk.subspan(wire::chunk_header_bytes),
                       !head.unchecked_chunks);
    incoming.land(chunk);
    while (true) {
      const std::size_t have = incoming.landed();
      if (have >= wire::chunk_header_bytes) intake.arrived(have - wire::chunk_header_bytes);
      if (incoming.ready()) break;
      const auto failure = co_await net::read_into(connection_.stream(), incoming);
      if (failure) co_return broken(*failure);
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
    result.bytes += expected;
  }
  co_return result;
}

}  // namespace dpwa
