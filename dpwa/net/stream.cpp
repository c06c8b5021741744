#include "dpwa/net/stream.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

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
  tls_ = std::make_unique<TlsSession>(socket_, std::move(context), calls);
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
  const auto [error, written] = co_await asio::async_write(socket_, buffers, all_of_it, as_result);
  co_return failure_of(error);
}

asio::awaitable<IoResult<std::size_t>> Stream::read_some(std::span<std::byte> target,
                                                         std::size_t at_least) {
  if (tls_) co_return co_await tls_->read_some(target, at_least);
  const auto buffer = asio::buffer(target.data(), target.size());
  const auto condition = [at_least](const error_code& error, std::size_t done) {
    return error || done >= at_least ? std::size_t{0} : max_transfer_bytes;
  };
  const auto [error, count] = co_await asio::async_read(socket_, buffer, condition, as_result);
  if (error) {
    Failure failure(error);
    co_return failure;
  }
  co_return count;
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

void Stream::close() {
  error_code ignored;
  socket_.close(ignored);
}

void tune(boost::asio::ip::tcp::socket& socket, const std::string& congestion_control) {
  using boost::asio::ip::tcp;
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(tcp::socket::keep_alive(true), ignored);
  std::string algorithm = congestion_control;
  if (algorithm == "auto") {
    const auto remote = socket.remote_endpoint(ignored);
    algorithm = !ignored && remote.address().is_loopback() ? "reno" : "";
  }
  if (!algorithm.empty()) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, algorithm.data(),
                 static_cast<socklen_t>(algorithm.size()));
  }
}

}  // namespace dpwa::net
