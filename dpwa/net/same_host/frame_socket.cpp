#include "dpwa/net/same_host/frame_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "dpwa/net/as_result.h"
#include "dpwa/net/same_host/descriptors.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using boost::system::error_code;

namespace {

error_code last_error() {
  return {errno, boost::system::system_category()};
}

bool would_block(const error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again;
}

}  // namespace

FrameSocket::~FrameSocket() {
  close();
}

void FrameSocket::close() {
  if (socket_.is_open()) discard_received(socket_.native_handle());
  error_code ignored;
  socket_.close(ignored);
  begin_ = end_ = 0;
  discard(take_descriptor());
}

bool FrameSocket::quiet() {
  std::byte next{};
  const ssize_t count = ::recv(socket_.native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return begin_ == end_ && count < 0 && would_block(last_error());
}

ssize_t FrameSocket::receive() {
  return same_host::receive(socket_.native_handle(), std::span(buffer_).subspan(end_),
                            descriptors_ == Descriptors::accepted ? &descriptor_ : nullptr);
}

asio::awaitable<error_code> FrameSocket::fill() {
  if (begin_ > 0) {
    std::copy(buffer_.begin() + begin_, buffer_.begin() + end_, buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  while (true) {
    const ssize_t count = receive();
    if (count > 0) {
      end_ += static_cast<std::size_t>(count);
      co_return error_code();
    }
    if (count == 0) co_return asio::error::eof;
    const error_code error = last_error();
    if (error == asio::error::interrupted) continue;
    if (!would_block(error)) co_return error;
    const auto [failed] =
        co_await socket_.async_wait(stream_protocol::socket::wait_read, net::as_result);
    if (failed) co_return failed;
  }
}

asio::awaitable<net::IoResult<net::Frame>> FrameSocket::read_frame(net::TypeSet expected) {
  net::Frame frame;
  for (bool have_header = false;;) {
    const auto bytes = std::span(buffer_).first(end_).subspan(begin_);
    if (!have_header && bytes.size() >= wire::header_bytes) {
      const auto header = wire::decode_header(bytes.first<wire::header_bytes>(), 0);
      if (!header) {
        const bool version = header.error().fault == wire::Fault::bad_version;
        net::IoFailure failure{true, version, header.error().detail};
        co_return failure;
      }
      frame.header = *header;
      have_header = true;
      if ((expected & net::types(header->type)) == 0 ||
          header->body_bytes > buffer_.size() - wire::header_bytes) {
        net::IoFailure failure{true, false,
                               "message type " + std::to_string(static_cast<int>(header->type)) +
                                   " is not expected here"};
        co_return failure;
      }
    }
    if (have_header && bytes.size() >= wire::header_bytes + frame.header.body_bytes) {
      const auto body = bytes.subspan(wire::header_bytes, frame.header.body_bytes);
      frame.body.assign(body.begin(), body.end());
      begin_ += wire::header_bytes + body.size();
      co_return frame;
    }
    const error_code error = co_await fill();
    if (error) {
      net::IoFailure failure{
          false, false,
          error == asio::error::eof ? std::string("the connection was closed") : error.message()};
      co_return failure;
    }
  }
}

asio::awaitable<error_code> FrameSocket::write(std::span<const std::byte> frame, int descriptor) {
  while (!frame.empty()) {
    const ssize_t count = send(socket_.native_handle(), frame, descriptor, MSG_DONTWAIT);
    if (count >= 0) {
      frame = frame.subspan(static_cast<std::size_t>(count));
      descriptor = -1;  // it went with the first byte
      continue;
    }
    const error_code error = last_error();
    if (error == asio::error::interrupted) continue;
    if (!would_block(error)) co_return error;
    const auto [failed] =
        co_await socket_.async_wait(stream_protocol::socket::wait_write, net::as_result);
    if (failed) co_return failed;
  }
  co_return error_code();
}

}  // namespace dpwa::same_host
