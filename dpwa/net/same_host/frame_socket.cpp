#include "dpwa/net/same_host/frame_socket.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace dpwa::same_host {

namespace asio = boost::asio;

asio::awaitable<net::IoResult<net::Frame>> FrameSocket::read_frame(net::TypeSet expected,
                                                                   FileDescriptor* kept) {
  kept_ = kept;
  return net::read_frame(*this, expected, longest_frame_bytes - wire::header_bytes);
}

asio::awaitable<net::IoResult<std::size_t>> FrameSocket::read_some(std::span<std::byte> target,
                                                                   std::size_t at_least) {
  for (std::size_t have = 0;;) {
    const auto part = std::span(buffer_).first(end_).subspan(begin_);
    const std::size_t taken = std::min(part.size(), target.size() - have);
    std::copy_n(part.begin(), taken, target.begin() + static_cast<std::ptrdiff_t>(have));
    begin_ += taken;
    have += taken;
    if (have >= at_least) co_return have;
    const auto got = co_await socket_.read_some(buffer_, 1, kept_);
    if (!got) {
      net::Failure failure(got.error());
      co_return failure;
    }
    begin_ = 0;
    end_ = *got;
  }
}

}  // namespace dpwa::same_host
