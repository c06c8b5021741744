#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "dpwa/ipc/async_socket.h"
#include "dpwa/net/frame_io.h"

namespace dpwa::same_host {

// The frames of frame_io.h over a Unix socket, with descriptors beside them. As there, nothing
// throws, and a failed stream must be closed. Used by the thread of its executor.
class FrameSocket final : public net::ByteSource {
 public:
  explicit FrameSocket(ipc::AsyncSocket::Socket socket) : socket_(std::move(socket)) {}

  // As net::read_frame. `kept` becomes the descriptor that comes along; null: none is taken.
  boost::asio::awaitable<net::IoResult<net::Frame>> read_frame(net::TypeSet expected,
                                                               FileDescriptor* kept = nullptr);
  // `descriptor` (-1: none) travels with the frame and stays open here.
  boost::asio::awaitable<ipc::error_code> write(std::span<const std::byte> frame,
                                                int descriptor = -1) {
    return socket_.write_all(frame, descriptor);
  }
  boost::asio::awaitable<net::IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                               std::size_t at_least) override;

  bool quiet() { return begin_ == end_ && socket_.quiet(); }  // as AsyncSocket's
  bool is_open() const { return socket_.is_open(); }
  void close() { socket_.close(); }
  ipc::AsyncSocket::Socket& socket() { return socket_.socket(); }

 private:
  static constexpr std::size_t longest_frame_bytes = 4096;  // header included

  ipc::AsyncSocket socket_;
  FileDescriptor* kept_ = nullptr;  // of the read under way
  // Bytes that arrived and are not read yet: a frame is short, and arrives with one system call.
  std::array<std::byte, longest_frame_bytes> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace dpwa::same_host
