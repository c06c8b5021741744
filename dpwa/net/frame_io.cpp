#include "dpwa/net/frame_io.h"

#include <algorithm>
#include <array>
#include <boost/asio/use_awaitable.hpp>
#include <span>
#include <string>

namespace dpwa::net {
namespace {

namespace asio = boost::asio;
constexpr std::size_t body_step_bytes = std::size_t{64} << 10;

asio::awaitable<IoResult<Frame>> read_frame(ByteSource& stream, TypeSet expected,
                                            std::uint64_t most_bytes,
                                            std::span<const wire::TypeBound> bounds) {
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
  Frame frame{*header, {}};
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
  co_return co_await read_frame(stream, expected, most_bytes, none_more);
}

asio::awaitable<IoResult<Frame>> read_frame(Stream& stream,
                                            std::span<const wire::TypeBound> expected) {
  TypeSet types;
  for (const wire::TypeBound& bound : expected) types.add(bound.type);
  constexpr auto most_bytes = std::numeric_limits<std::uint64_t>::max();
  co_return co_await read_frame(stream, types, most_bytes, expected);
}

}  // namespace dpwa::net
