#include "dpwa/net/frame_io.h"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace dpwa::net {
namespace {

namespace asio = boost::asio;
constexpr std::size_t body_step_bytes = std::size_t{64} << 10;
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

IoFailure broken(const boost::system::error_code& error) {
  return {false, false, error == asio::error::eof ? "the connection was closed" : error.message()};
}

}  // namespace

asio::awaitable<boost::system::error_code> write_all(asio::ip::tcp::socket& socket,
                                                     std::span<const std::byte> bytes) {
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  const auto condition = [](const boost::system::error_code& error, std::size_t) {
    return error ? std::size_t{0} : max_transfer_bytes;
  };
  const auto [error, written] = co_await asio::async_write(socket, buffer, condition, as_result);
  co_return error;
}

asio::awaitable<IoResult<std::size_t>> read_some(asio::ip::tcp::socket& socket,
                                                 std::span<std::byte> target,
                                                 std::size_t at_least) {
  const auto buffer = asio::buffer(target.data(), target.size());
  const auto condition = [at_least](const boost::system::error_code& error, std::size_t done) {
    return error || done >= at_least ? std::size_t{0} : max_transfer_bytes;
  };
  const auto [error, count] = co_await asio::async_read(socket, buffer, condition, as_result);
  if (error) {
    IoFailure failure = broken(error);
    co_return failure;
  }
  co_return count;
}

asio::awaitable<IoResult<Frame>> read_frame(asio::ip::tcp::socket& socket, TypeSet expected) {
  std::array<std::byte, wire::header_bytes> header_bytes;
  const auto got_header = co_await read_some(socket, header_bytes, header_bytes.size());
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
  // Memory follows the bytes that have arrived, not the length that was announced.
  Frame frame{*header, {}};
  while (frame.body.size() < header->body_bytes) {
    const std::size_t have = frame.body.size();
    const std::size_t wanted = std::min<std::uint64_t>(header->body_bytes, have + body_step_bytes);
    frame.body.resize(wanted);
    const auto target = std::span(frame.body).subspan(have);
    const auto got_body = co_await read_some(socket, target, target.size());
    if (!got_body) co_return got_body.error();
  }
  co_return frame;
}

}  // namespace dpwa::net
