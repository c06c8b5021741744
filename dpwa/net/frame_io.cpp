#include "dpwa/net/frame_io.h"

#include <algorithm>
#include <array>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "dpwa/net/kv_frame.h"
#include "dpwa/wire/kv_messages.h"

namespace dpwa::net {
namespace {

namespace asio = boost::asio;
constexpr std::size_t body_step_bytes = std::size_t{64} << 10;

// Most heads of messages of the store are shorter.
constexpr std::size_t usual_head_bytes = 512;

// The rest of `target`, of which `have` bytes are there. Whether all came.
asio::awaitable<IoResult<bool>> read_rest(ByteSource& stream, std::span<std::byte> target,
                                          std::size_t have) {
  // The rest of a long one in turns with other connections.
  target = target.subspan(have);
  target = target.subspan(stream.read_at_once(target));
  if (target.empty()) co_return true;
  const auto got = co_await stream.read_some(target, target.size());
  if (!got) co_return got.error();
  co_return true;
}

// The body of a message of the store. The memory of the payload is not touched before its bytes
// arrive.
asio::awaitable<IoResult<bool>> read_kv_body(ByteSource& stream, Frame& frame,
                                             const PayloadTarget& target) {
  const std::uint64_t bytes = frame.header.body_bytes;
  frame.body.resize(std::min<std::uint64_t>(bytes, usual_head_bytes));
  auto got = co_await read_rest(stream, frame.body, 0);
  if (!got) co_return got.error();
  if (frame.body.size() < wire::kv_head_length_bytes) co_return true;  // is refused by the decoder
  const auto head = wire::kv_head_bytes(
      std::span(std::as_const(frame.body)).first<wire::kv_head_length_bytes>(), bytes);
  if (!head) {
    Failure failure(head.error());
    co_return failure;
  }
  while (frame.body.size() < *head) {
    const std::size_t before = frame.body.size();
    frame.body.resize(std::min<std::size_t>(*head, before + body_step_bytes));
    got = co_await read_rest(stream, frame.body, before);
    if (!got) co_return got.error();
  }
  const std::size_t have = frame.body.size() - *head;  // of the payload
  const std::uint64_t payload_bytes = bytes - *head;
  if (payload_bytes == 0) co_return true;
  std::span<std::byte> payload;
  if (target) {
    const auto start = std::span(std::as_const(frame.body)).first(*head);
    payload = target(frame.header.type, start, payload_bytes);
  }
  if (payload.empty()) {
    frame.payload.resize(payload_bytes);
    payload = frame.payload;
  }
  if (have > 0) std::memcpy(payload.data(), frame.body.data() + *head, have);
  frame.body.resize(*head);
  if (have == payload_bytes) co_return true;
  co_return co_await read_rest(stream, payload, have);
}

asio::awaitable<IoResult<Frame>> read_frame(ByteSource& stream, TypeSet expected,
                                            std::uint64_t most_bytes,
                                            std::span<const wire::TypeBound> bounds,
                                            const PayloadTarget& target) {
  std::array<std::byte, wire::header_bytes> header_bytes;
  const auto got_header = co_await stream.read_some(header_bytes, header_bytes.size());
  if (!got_header) co_return got_header.error();
  const auto header = wire::decode_header(header_bytes, 0, bounds);
  if (!header) {
    Failure failure(header.error());
    co_return failure;
  }
  if (!expected.has(header->type)) {
    Failure failure(
        Failure::Kind::protocol,
        "message type " + std::to_string(static_cast<int>(header->type)) + " is not expected here");
    co_return failure;
  }
  if (header->body_bytes > most_bytes) {
    Failure failure(Failure::Kind::protocol, "a message of " + std::to_string(header->body_bytes) +
                                                 " bytes, where " + std::to_string(most_bytes) +
                                                 " are allowed");
    co_return failure;
  }
  // Memory follows the bytes that have arrived, not the length that was announced.
  Frame frame{*header, {}, {}};
  if (wire::is_kv_type(header->type)) {
    const auto got = co_await read_kv_body(stream, frame, target);
    if (!got) co_return got.error();
    co_return frame;
  }
  while (frame.body.size() < header->body_bytes) {
    const std::size_t have = frame.body.size();
    const std::size_t wanted = std::min<std::uint64_t>(header->body_bytes, have + body_step_bytes);
    frame.body.resize(wanted);
    const auto whole = std::span(frame.body).subspan(have);
    // The rest of a long one in turns with other connections.
    const auto target = whole.subspan(have == 0 ? stream.read_at_once(whole) : 0);
    if (target.empty()) continue;
    const auto got_body = co_await stream.read_some(target, target.size());
    if (!got_body) co_return got_body.error();
  }
  co_return frame;
}

}  // namespace

asio::awaitable<IoResult<Frame>> read_frame(ByteSource& stream, TypeSet expected,
                                            std::uint64_t most_bytes) {
  const std::span<const wire::TypeBound> none_more;
  const PayloadTarget nowhere;
  co_return co_await read_frame(stream, expected, most_bytes, none_more, nowhere);
}

asio::awaitable<IoResult<Frame>> read_frame(ByteSource& stream,
                                            std::span<const wire::TypeBound> expected) {
  TypeSet types;
  for (const wire::TypeBound& bound : expected) types.add(bound.type);
  constexpr auto most_bytes = std::numeric_limits<std::uint64_t>::max();
  const PayloadTarget nowhere;
  co_return co_await read_frame(stream, types, most_bytes, expected, nowhere);
}

asio::awaitable<IoResult<Frame>> read_frame(ByteSource& stream,
                                            std::span<const wire::TypeBound> expected,
                                            const PayloadTarget& target) {
  TypeSet types;
  for (const wire::TypeBound& bound : expected) types.add(bound.type);
  constexpr auto most_bytes = std::numeric_limits<std::uint64_t>::max();
  co_return co_await read_frame(stream, types, most_bytes, expected, target);
}

}  // namespace dpwa::net
