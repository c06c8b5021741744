#include "dpwa/net/peer_channel.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "dpwa/net/connect.h"
#include "dpwa/net/socket_options.h"
#include "dpwa/wire/checksum.h"

namespace dpwa {

namespace asio = boost::asio;
using asio::ip::tcp;
using wire::MessageType;

namespace {

// The staging buffer is laid out so that a chunk's payload starts on a cache line:
//   [0, pad) unused | reply lead (header, head, first chunk header) | payload at payload_offset
constexpr std::size_t payload_offset = (PeerChannel::reply_lead_bytes + 63) / 64 * 64;
constexpr std::size_t lead_offset = payload_offset - PeerChannel::reply_lead_bytes;

PullResult failed(const net::IoFailure& failure) {
  return {failure.protocol ? PeerFailure::protocol : PeerFailure::unreachable,
          failure.detail,
          {},
          0,
          0};
}

PullResult failed(const wire::WireError& error) {
  return {PeerFailure::protocol, error.detail, {}, 0, 0};
}

PullResult declined_without_fields(PeerFailure failure, std::string detail,
                                   std::span<const std::byte> body) {
  const auto empty = wire::decode_empty(body);
  if (!empty) return failed(empty.error());
  return {failure, std::move(detail), {}, 0, 0};
}

// A reply other than SNAPSHOT, in words.
PullResult declined(MessageType type, std::span<const std::byte> body) {
  switch (type) {
    case MessageType::not_ready:
      return declined_without_fields(PeerFailure::not_ready, "has no parameters yet", body);
    case MessageType::not_modified:
      return declined_without_fields(PeerFailure::unchanged, "has published nothing new", body);
    case MessageType::busy:
      return declined_without_fields(PeerFailure::busy, "is busy", body);
    case MessageType::reject: {
      const auto reject = wire::decode_reject(body);
      if (!reject) return failed(reject.error());
      return {PeerFailure::rejected, reject->reason, {}, 0, 0};
    }
    case MessageType::error: {
      const auto error = wire::decode_error(body);
      return {PeerFailure::protocol, error ? error->reason : error.error().detail, {}, 0, 0};
    }
    default:
      return {PeerFailure::protocol, "sent a reply that does not belong to a pull", {}, 0, 0};
  }
}

}  // namespace

PeerChannel::PeerChannel(asio::io_context& io, const LocalNode& local, PeerAddress address,
                         std::string congestion_control, AlignedBuffer& staging)
    : local_(local),
      address_(std::move(address)),
      congestion_control_(std::move(congestion_control)),
      staging_(staging),
      socket_(io) {}

AlignedBuffer PeerChannel::make_staging(std::size_t chunk_bytes) {
  return AlignedBuffer(payload_offset + chunk_bytes);
}

void PeerChannel::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

asio::awaitable<PeerChannel::Greeting> PeerChannel::shake_hands() {
  const auto error = co_await net::connect(socket_, address_);
  if (error) {
    Greeting greeting{PeerFailure::unreachable, error.message(), {}};
    co_return greeting;
  }
  net::tune(socket_, congestion_control_);
  const wire::Hello hello{wire::Role::node,   net::types(wire::Codec::raw),
                          local_.cluster,     local_.name,
                          local_.incarnation, local_.manifest.fingerprint()};
  const auto encoded = wire::encode(hello, next_request_id_++);
  const auto written = co_await net::write_all(socket_, encoded);
  if (written) {
    Greeting greeting{PeerFailure::unreachable, written.message(), {}};
    co_return greeting;
  }
  constexpr auto replies =
      net::types(MessageType::welcome, MessageType::reject, MessageType::manifest_request);
  auto frame = co_await net::read_frame(socket_, replies);
  if (frame && frame->header.type == MessageType::manifest_request) {
    const auto manifest = wire::encode(local_.manifest, frame->header.request_id);
    const auto sent = co_await net::write_all(socket_, manifest);
    if (!sent) frame = co_await net::read_frame(socket_, replies);
  }
  Greeting greeting;
  if (!frame) {
    const PullResult result = failed(frame.error());
    greeting.failure = result.failure;
    greeting.detail = result.detail;
  } else if (frame->header.type != MessageType::welcome) {
    const PullResult result = declined(frame->header.type, frame->body);
    greeting.failure = result.failure;
    greeting.detail = result.detail;
  } else if (const auto welcome = wire::decode_welcome(frame->body); !welcome) {
    greeting.failure = PeerFailure::protocol;
    greeting.detail = welcome.error().detail;
  } else if (welcome->node != address_.name) {
    greeting.failure = PeerFailure::rejected;
    greeting.detail = "the node at this address calls itself '" + welcome->node + "'";
  } else {
    greeting.welcome = *welcome;
    incarnation_ = welcome->incarnation;
  }
  co_return greeting;
}

asio::awaitable<PeerChannel::Greeting> PeerChannel::greet() {
  close();
  auto greeting = co_await shake_hands();
  if (greeting.failure) close();
  co_return greeting;
}

asio::awaitable<PullResult> PeerChannel::pull(PullRequest request, Landing& landing) {
  PullResult result;
  // A kept connection may have died unnoticed: the first failure on it costs one fresh try.
  const bool kept = socket_.is_open();
  for (int attempt = kept ? 0 : 1; attempt < 2; ++attempt) {
    if (!socket_.is_open()) {
      const auto greeting = co_await shake_hands();
      if (greeting.failure) {
        close();
        result.failure = greeting.failure;
        result.detail = greeting.detail;
        co_return result;
      }
    }
    const std::uint32_t request_id = next_request_id_++;
    wire::Pull message;
    message.full = request.full;
    message.for_final_average = request.for_final_average;
    if (request.known_incarnation == incarnation_) message.known_version = request.known_version;
    message.chunk_bytes = static_cast<std::uint32_t>(staging_.bytes().size() - payload_offset);
    message.deadline_ms = request.deadline_ms;
    const auto encoded = wire::encode(message, request_id);
    const auto error = co_await net::write_all(socket_, encoded);
    if (error) {
      result.failure = PeerFailure::unreachable;
      result.detail = error.message();
    } else {
      PullRequest copy = request;
      result = co_await receive(std::move(copy), request_id, landing);
    }
    result.incarnation = incarnation_;
    if (!result.failure || declined_in_order(*result.failure)) {
      co_return result;  // the stream is whole
    }
    const bool closed_by_caller = !socket_.is_open();
    close();
    const bool broke_before_reply = result.failure == PeerFailure::unreachable && result.bytes == 0;
    if (closed_by_caller || !broke_before_reply) break;
  }
  co_return result;
}

asio::awaitable<PullResult> PeerChannel::receive(PullRequest request, std::uint32_t request_id,
                                                 Landing& landing) {
  const auto window = staging_.bytes().subspan(lead_offset);  // lead and first payload
  const auto first = co_await net::read_some(socket_, window, wire::header_bytes);
  if (!first) co_return failed(first.error());
  std::size_t buffered = *first;

  const auto chunk_bytes = static_cast<std::uint32_t>(staging_.bytes().size() - payload_offset);
  const std::uint64_t expected_bytes =
      request.full ? local_.manifest.total_bytes() : local_.manifest.exchange_bytes();
  const std::uint64_t max_body = wire::snapshot_body_bytes(expected_bytes, wire::min_chunk_bytes);
  const auto header = wire::decode_header(window.first<wire::header_bytes>(), max_body);
  if (!header) co_return failed(header.error());
  if (header->request_id != request_id) {
    PullResult result{PeerFailure::protocol, "answered another request", {}, 0, 0};
    co_return result;
  }
  const bool is_snapshot = header->type == MessageType::snapshot;
  const std::size_t wanted =
      wire::header_bytes +
      (is_snapshot ? wire::snapshot_head_bytes : static_cast<std::size_t>(header->body_bytes));
  if (wanted > window.size()) {
    PullResult result{
        PeerFailure::protocol, "sent a reply that does not belong to a pull", {}, 0, 0};
    co_return result;
  }
  if (buffered < wanted) {
    const auto more = co_await net::read_some(socket_, window.subspan(buffered), wanted - buffered);
    if (!more) co_return failed(more.error());
    buffered += *more;
  }
  const auto body = window.subspan(wire::header_bytes, wanted - wire::header_bytes);
  if (!is_snapshot && buffered > wanted) {
    PullResult result{PeerFailure::protocol, "sent bytes that nobody asked for", {}, 0, 0};
    co_return result;
  }
  if (!is_snapshot) co_return declined(header->type, body);

  const auto head =
      wire::decode_snapshot_head(body.first<wire::snapshot_head_bytes>(), header->body_bytes);
  if (!head) co_return failed(head.error());
  if (head->offset != 0 || head->length != expected_bytes || head->chunk_bytes != chunk_bytes) {
    PullResult result{PeerFailure::protocol,
                      "sent " + std::to_string(head->length) + " bytes in chunks of " +
                          std::to_string(head->chunk_bytes) + " where " +
                          std::to_string(expected_bytes) + " bytes in chunks of " +
                          std::to_string(chunk_bytes) + " were asked for",
                      {},
                      0,
                      0};
    co_return result;
  }
  if (const auto verdict = request.judge ? request.judge(head->progress) : std::nullopt) {
    PullResult result{
        verdict,
        "is too far behind or stands still, at clock " + std::to_string(head->progress.clock),
        head->progress, 0, 0};
    co_return result;
  }
  if (request.begin_landing) request.begin_landing();
  co_return co_await receive_chunks(*head, buffered, landing);
}

asio::awaitable<PullResult> PeerChannel::receive_chunks(wire::SnapshotHead head,
                                                        std::size_t buffered, Landing& landing) {
  const auto staging = staging_.bytes();
  PullResult result;
  result.progress = head.progress;
  // `have` counts what has been read of the current chunk, its header included.
  std::size_t have = buffered - wire::header_bytes - wire::snapshot_head_bytes;
  for (std::uint64_t at = 0; at < head.length;) {
    const auto payload_bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(head.chunk_bytes, head.length - at));
    const auto chunk = staging.subspan(payload_offset - wire::chunk_header_bytes,
                                       wire::chunk_header_bytes + payload_bytes);
    if (have < chunk.size()) {
      const auto more = co_await net::read_some(socket_, chunk.subspan(have), chunk.size() - have);
      if (!more) {
        PullResult broken = failed(more.error());
        broken.bytes = at;
        co_return broken;
      }
      have += *more;
    }
    if (have > chunk.size()) {
      result.failure = PeerFailure::protocol;
      result.detail = "sent more bytes than it announced";
      co_return result;
    }
    const auto header =
        wire::decode_chunk_header(chunk.first<wire::chunk_header_bytes>(), payload_bytes);
    if (!header) co_return failed(header.error());
    const auto payload = chunk.subspan(wire::chunk_header_bytes);
    if (wire::crc32c(payload) != header->crc) {
      result.failure = PeerFailure::protocol;
      result.detail = "sent a chunk with a wrong checksum at byte " + std::to_string(at);
      co_return result;
    }
    landing.consume(at, payload);
    at += payload_bytes;
    have = 0;
    result.bytes = at;
  }
  co_return result;
}

}  // namespace dpwa
