#include "dpwa/net/same_host/frame_socket.h"

#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace dpwa::same_host {

namespace asio = boost::asio;

asio::awaitable<net::IoResult<net::Frame>> FrameSocket::read_frame(net::TypeSet expected,
                                                                   FileDescriptor* kept) {
  kept_ = kept;
  const net::Expected frames(expected, longest_frame_bytes - wire::header_bytes);
  return net::receive(*this, incoming_, frames);
}

asio::awaitable<net::IoResult<std::size_t>> FrameSocket::read_some(std::span<std::byte> target,
                                                                   std::size_t at_least) {
  const auto got = co_await socket_.read_some(target, at_least, kept_);
  if (got) co_return *got;
  net::Failure failure(got.error());
  co_return failure;
}

}  // namespace dpwa::same_host
