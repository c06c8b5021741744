#include "dpwa/ipc/async_socket.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>

namespace dpwa::ipc {

namespace asio = boost::asio;

namespace {

// co_await with this token returns the error code; nothing throws.
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

}  // namespace

asio::awaitable<boost::system::result<std::size_t>> AsyncSocket::read_some(
    std::span<std::byte> target, std::size_t at_least, FileDescriptor* kept) {
  Read read(target, at_least, kept);
  while (true) {
    const error_code error = read.step(socket_.native_handle());
    if (!error) co_return read.bytes();
    if (error != asio::error::would_block) co_return error;
    const auto [failed] = co_await socket_.async_wait(Socket::wait_read, as_result);
    if (failed) co_return failed;
  }
}

asio::awaitable<error_code> AsyncSocket::write_all(std::span<const std::byte> bytes,
                                                   int descriptor) {
  Write write(bytes, descriptor);
  while (true) {
    const error_code error = write.step(socket_.native_handle());
    if (error != asio::error::would_block) co_return error;
    const auto [failed] = co_await socket_.async_wait(Socket::wait_write, as_result);
    if (failed) co_return failed;
  }
}

bool AsyncSocket::quiet() {
  std::byte next{};
  return ::recv(socket_.native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

void AsyncSocket::close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace dpwa::ipc
