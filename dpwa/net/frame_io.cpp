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

}  // namespace

asio::awaitable<IoResult<Frame>> read_frame(ByteSource& stream, TypeSet expected,
                                            std::uint64_t most_bytes) {
  std::array<std::byte, wire::header_bytes> header_bytes;
  const auto got_header = co_await stream.read_some(header_bytes, header_bytes.size());
  if (!got_header) co_return got_header.error();
  const auto header = wire::decode_header(header_bytes, 0);
  if (!header) {
    IoFailure failure{true, header.error().fault == wire::Fault::bad_version,
                      header.error().detail};
    co_return failure;
  }
  if ((expected & types(header->type)) == 0) {
    IoFailure failure{
        true, false,
        "message type " + std::to_string(static_cast<int>(header->type)) + " is not expected here"};
    co_return failure;
  }
  if (header->body_bytes > most_bytes) {
    IoFailure failure{true, false,
                      "a message of " + std::to_string(header->body_bytes) + " bytes, where " +
                          std::to_string(most_bytes) + " are the most"};
    co_return failure;
  }
  // Memory follows the bytes that have arrived, not the length that was announced.
  Frame frame{*header, {}};
  while (frame.body.size() < header->body_bytes) {
    const std::size_t have = frame.body.size();
    const std::size_t wanted = std::min<std::uint64_t>(header->body_bytes, have + body_step_bytes);
    frame.body.resize(wanted);
    const auto target = std::span(frame.body).subspan(have);
    const auto got_body = co_await stream.read_some(target, target.size());
    if (!got_body) co_return got_body.error();
  }
  co_return frame;
}

}  // namespace dpwa::net
