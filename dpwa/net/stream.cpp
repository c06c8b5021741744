#include "dpwa/net/stream.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <string_view>

#include "dpwa/net/coroutine.h"
#include "dpwa/net/tls_session.h"

namespace dpwa::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

std::optional<Failure> failure_of(const error_code& error) {
  return error ? std::optional<Failure>(error) : std::nullopt;
}

constexpr std::size_t max_finish_bytes = std::size_t{256} << 10;

constexpr std::size_t max_at_once_buffers = 4;

// What a reader sleeps for: less is not worth a call to set it, and more would come too late.
constexpr std::size_t least_low_water_bytes = std::size_t{16} << 10;
constexpr std::size_t most_low_water_bytes = std::size_t{64} << 10;

// How many bytes of a short message the kernel takes now; 0 after a failure.
std::size_t send_at_once(int socket, std::span<const asio::const_buffer> buffers) {
  std::array<iovec, max_at_once_buffers> parts{};
  for (std::size_t i = 0; i < buffers.size(); ++i)
    parts[i] = {const_cast<void*>(buffers[i].data()), buffers[i].size()};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = buffers.size();
  const ssize_t count = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

std::vector<asio::const_buffer> without_first(std::span<const asio::const_buffer> buffers,
                                              std::size_t bytes) {
  std::vector<asio::const_buffer> rest;
  for (const asio::const_buffer& buffer : buffers) {
    const std::size_t gone = std::min(bytes, buffer.size());
    rest.push_back(buffer + gone);
    bytes -= gone;
  }
  return rest;
}

constexpr auto all_of_it = [](const error_code& error, std::size_t) {
  return error ? std::size_t{0} : Stream::max_transfer_bytes;
};

}  // namespace

Stream::Stream(asio::io_context& io) : socket_(io) {}
Stream::Stream(const asio::any_io_executor& executor) : socket_(executor) {}
Stream::Stream(Socket socket) : socket_(std::move(socket)) {}
Stream::~Stream() = default;

asio::awaitable<std::optional<Failure>> Stream::secure(std::shared_ptr<const TlsContext> context,
                                                       bool calls) {
  tls_ = std::make_unique<TlsSession>(socket_, std::move(context), calls, calls || reads_bulk_);
  co_return co_await tls_->shake_hands();
}

std::optional<std::vector<std::string>> Stream::certified_names() const {
  return tls_ ? tls_->certified_names() : std::nullopt;
}

asio::awaitable<std::optional<Failure>> Stream::write_all(std::span<const std::byte> bytes) {
  const asio::const_buffer buffer(bytes.data(), bytes.size());
  const std::span<const asio::const_buffer> buffers(&buffer, 1);
  co_return co_await write_all(buffers);
}

asio::awaitable<std::optional<Failure>> Stream::write_all(
    std::span<const asio::const_buffer> buffers) {
  if (tls_) {
    const error_code error = co_await tls_->write_all(buffers);
    co_return failure_of(error);
  }
  const std::size_t size = asio::buffer_size(buffers);
  const bool is_short =
      buffers.size() <= max_at_once_buffers && at_once_bytes_ + size <= max_at_once_bytes;
  const std::size_t sent = is_short ? send_at_once(socket_.native_handle(), buffers) : 0;
  at_once_bytes_ += sent;
  if (sent == size) co_return std::nullopt;
  at_once_bytes_ = 0;
  if (sent > 0) {
    const std::vector<asio::const_buffer> rest = without_first(buffers, sent);
    const auto [error, written] = co_await asio::async_write(socket_, rest, all_of_it, as_result);
    co_return failure_of(error);
  }
  const auto [error, written] = co_await asio::async_write(socket_, buffers, all_of_it, as_result);
  co_return failure_of(error);
}

std::size_t Stream::read_at_once(std::span<std::byte> target) {
  if (tls_ || target.empty() || read_at_once_bytes_ >= max_read_at_once_bytes) return 0;
  const ssize_t count = ::recv(socket_.native_handle(), target.data(), target.size(), MSG_DONTWAIT);
  if (count <= 0) return 0;
  read_at_once_bytes_ += static_cast<std::size_t>(count);
  return static_cast<std::size_t>(count);
}

// The reactor then sleeps until so many bytes are there, instead of waking for each segment.
void Stream::sleep_until(std::size_t bytes) {
  const auto low = bytes < least_low_water_bytes ? 1 : std::min(bytes, most_low_water_bytes);
  if (static_cast<int>(low) == low_water_) return;
  low_water_ = static_cast<int>(low);
  ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &low_water_, sizeof low_water_);
}

asio::awaitable<IoResult<std::size_t>> Stream::read_some(std::span<std::byte> target,
                                                         std::size_t at_least) {
  if (tls_) co_return co_await tls_->read_some(target, at_least);
  at_once_bytes_ = read_at_once_bytes_ = 0;
  std::size_t have = 0;
  do {
    sleep_until(at_least - have);
    const std::size_t size = std::min(target.size() - have, max_transfer_bytes);
    const auto buffer = asio::buffer(target.data() + have, size);
    const auto [error, count] = co_await socket_.async_read_some(buffer, as_result);
    if (error) {
      Failure failure(error);
      co_return failure;
    }
    have += count;
  } while (have < at_least);
  co_return have;
}

asio::awaitable<std::optional<std::byte>> Stream::first_byte() {
  std::optional<std::byte> first;
  std::byte next{};
  const auto buffer = asio::buffer(&next, 1);
  const auto [error, count] =
      co_await socket_.async_receive(buffer, Socket::message_peek, as_result);
  if (!error && count == 1) first = next;
  co_return first;
}

asio::awaitable<void> Stream::finish() {
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  std::array<std::byte, 4096> unread;
  for (std::size_t taken = 0; !error && taken < max_finish_bytes;) {
    const auto [failed, count] = co_await socket_.async_read_some(asio::buffer(unread), as_result);
    error = failed;
    taken += count;
  }
}

Stream::Released Stream::release() {
  Released released{FileDescriptor(socket_.release()), nullptr};
  if (tls_) {
    released.tls = tls_->release();
    released.tls->receive_from([descriptor = released.socket.get()] { return descriptor; });
    tls_.reset();
  }
  low_water_ = 1;
  return released;
}

void Stream::close() {
  error_code ignored;
  socket_.close(ignored);
  low_water_ = 1;
}

void tune(boost::asio::ip::tcp::socket& socket) {
  using boost::asio::ip::tcp;
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(tcp::socket::keep_alive(true), ignored);
  const auto remote = socket.remote_endpoint(ignored);
  if (ignored || !remote.address().is_loopback()) return;
  constexpr std::string_view reno = "reno";
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, reno.data(), reno.size());
}

}  // namespace dpwa::net
