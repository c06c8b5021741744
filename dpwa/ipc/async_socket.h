#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstddef>
#include <span>
#include <utility>

#include "dpwa/ipc/unix_socket.h"

namespace dpwa::ipc {

// The coroutine side of a connection. At most one read and one write at a time; no failure throws.
// close() makes pending operations fail; deadlines work this way. Used by the thread of its
// executor.
class AsyncSocket {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;

  explicit AsyncSocket(Socket socket) : socket_(std::move(socket)) {}

  // The number of bytes read; `kept` as in Read.
  boost::asio::awaitable<boost::system::result<std::size_t>> read_some(
      std::span<std::byte> target, std::size_t at_least, FileDescriptor* kept = nullptr);
  boost::asio::awaitable<error_code> write_all(std::span<const std::byte> bytes,
                                               int descriptor = -1);

  // Everything that has arrived was read, and the other end has not closed.
  bool quiet();
  bool is_open() const { return socket_.is_open(); }
  void close();
  Socket& socket() { return socket_; }  // not for reading or writing

 private:
  Socket socket_;
};

}  // namespace dpwa::ipc
