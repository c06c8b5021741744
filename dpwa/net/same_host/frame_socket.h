#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstddef>
#include <span>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/net/frame_io.h"

namespace dpwa::same_host {

// Small frames over a Unix socket, and descriptors beside them. As in frame_io.h nothing throws,
// and a failed stream is to be closed. Used by the thread of its executor.
class FrameSocket {
 public:
  enum class Descriptors { refused, accepted };

  FrameSocket(boost::asio::local::stream_protocol::socket socket, Descriptors descriptors)
      : socket_(std::move(socket)), descriptors_(descriptors) {}
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  // The next frame of the expected types; any other, or one that does not fit into the buffer, is a
  // protocol failure.
  boost::asio::awaitable<net::IoResult<net::Frame>> read_frame(net::TypeSet expected);
  // `descriptor` (-1 = none) travels with the frame and stays open here.
  boost::asio::awaitable<boost::system::error_code> write(std::span<const std::byte> frame,
                                                          int descriptor = -1);
  // The descriptor that came last and was not taken; not valid when there is none.
  FileDescriptor take_descriptor() { return std::move(descriptor_); }

  // Nothing has come that was not read, and the other side has not ended the connection.
  bool quiet();
  bool is_open() const { return socket_.is_open(); }
  void close();
  boost::asio::local::stream_protocol::socket& socket() { return socket_; }

 private:
  // Waits for bytes and appends them to the buffer.
  boost::asio::awaitable<boost::system::error_code> fill();
  ssize_t receive();

  boost::asio::local::stream_protocol::socket socket_;
  const Descriptors descriptors_;
  std::array<std::byte, 4096> buffer_;
  std::size_t begin_ = 0;  // of the bytes that were received and not yet read
  std::size_t end_ = 0;
  FileDescriptor descriptor_;
};

}  // namespace dpwa::same_host
