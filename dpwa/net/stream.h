#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace dpwa::net {

// Why a frame could not be read or written.
struct IoFailure {
  IoFailure() = default;
  IoFailure(bool is_protocol, bool is_version_mismatch, std::string what)
      : protocol(is_protocol), version_mismatch(is_version_mismatch), detail(std::move(what)) {}

  bool protocol =
      false;  // bytes arrived that are no valid frame; otherwise the stream broke or ended
  bool version_mismatch = false;  // a frame of another protocol version
  std::string detail;
};
template <typename T>
using IoResult = boost::system::result<T, IoFailure>;

// One connection between two nodes, as a stream of bytes. At most one read or write at a time.
// Nothing of it throws. close() ends what is pending, which then fails: that is how deadlines work.
// One thread.
class Stream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  explicit Stream(boost::asio::io_context& io) : socket_(io) {}
  explicit Stream(const boost::asio::any_io_executor& executor) : socket_(executor) {}
  explicit Stream(Socket socket) : socket_(std::move(socket)) {}

  // Everything moves as much per system call as the kernel takes (Asio's default is 64 KiB).
  boost::asio::awaitable<boost::system::error_code> write_all(std::span<const std::byte> bytes);
  // One after the other, in one gathered write. The buffers and the span outlive the call.
  boost::asio::awaitable<boost::system::error_code> write_all(
      std::span<const boost::asio::const_buffer> buffers);
  // Reads at least `at_least` bytes into `target` and returns how many came.
  boost::asio::awaitable<IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                          std::size_t at_least);

  bool is_open() const { return socket_.is_open(); }
  void close();
  boost::asio::any_io_executor get_executor() { return socket_.get_executor(); }
  // To connect it, set its options and ask for addresses; never to read or write.
  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }

  // Bytes per system call.
  static constexpr std::size_t max_transfer_bytes = std::size_t{4} << 20;

 private:
  Socket socket_;
};

}  // namespace dpwa::net
