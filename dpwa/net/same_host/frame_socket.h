#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "dpwa/ipc/async_socket.h"
#include "dpwa/net/connection.h"

namespace dpwa::same_host {

// Frames over a Unix socket, with descriptors beside them. Nothing throws, and a failed stream must
// be closed. Used by the thread of its executor.
class FrameSocket final : public net::ByteSource {
 public:
  explicit FrameSocket(ipc::AsyncSocket::Socket socket) : socket_(std::move(socket)) {}

  // As net::receive(). `kept` becomes the descriptor that comes along; null: none is taken.
  boost::asio::awaitable<net::IoResult<net::Frame>> read_frame(net::TypeSet expected,
                                                               FileDescriptor* kept = nullptr);
  // `descriptor` (-1: none) travels with the frame and stays open here.
  boost::asio::awaitable<ipc::error_code> write(std::span<const std::byte> frame,
                                                int descriptor = -1) {
    return socket_.write_all(frame, descriptor);
  }
  boost::asio::awaitable<net::IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                               std::size_t at_least) override;

  bool quiet() { return !incoming_.holds_bytes() && socket_.quiet(); }  // as AsyncSocket's
  bool is_open() const { return socket_.is_open(); }
  void close() { socket_.close(); }
  ipc::AsyncSocket::Socket& socket() { return socket_.socket(); }

 private:
  static constexpr std::size_t longest_frame_bytes = 4096;  // header included

  ipc::AsyncSocket socket_;
  FileDescriptor* kept_ = nullptr;  // of the read under way
  // A frame is short, and arrives with one system call.
  net::Incoming incoming_{longest_frame_bytes};
};

}  // namespace dpwa::same_host
