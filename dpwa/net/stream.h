#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/net/failure.h"

namespace dpwa {
class TlsContext;
}

namespace dpwa::net {

class TlsRecords;
class TlsSession;

// Where frames come from.
class ByteSource {
 public:
  // Reads at least `at_least` bytes into `target` and returns how many came.
  virtual boost::asio::awaitable<IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                                  std::size_t at_least) = 0;
  // Takes what has already come, up to the size of `target`, and returns how much that was. After a
  // failure it returns 0, and the next read_some() reports it.
  virtual std::size_t read_at_once(std::span<std::byte>) { return 0; }

 protected:
  ~ByteSource() = default;
};

// One connection between two nodes, as a stream of bytes: TCP, or TLS over it once secure() has
// been called. At most one read and one write at a time. No failure of the connection throws.
// close() ends what is pending, which then fails: that is how deadlines work. One thread.
class Stream final : public ByteSource {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  explicit Stream(boost::asio::io_context& io);
  explicit Stream(const boost::asio::any_io_executor& executor);
  explicit Stream(Socket socket);
  ~Stream();

  // The TLS handshake on a connection that has just been made; `calls`: by this end. None: all
  // later bytes are encrypted, between two ends that have proved their identity.
  boost::asio::awaitable<std::optional<Failure>> secure(std::shared_ptr<const TlsContext> context,
                                                        bool calls);
  // Before secure(): this end reads much, also where it was called. A caller does in any case.
  void expect_bulk() { reads_bulk_ = true; }
  // The names in the other end's certificate; none where certificates are not used.
  std::optional<std::vector<std::string>> certified_names() const;

  // Everything moves as much per system call as the kernel takes (Asio's default is 64 KiB).
  // None: done.
  boost::asio::awaitable<std::optional<Failure>> write_all(std::span<const std::byte> bytes);
  // One after the other, in one gathered write. The buffers and the span outlive the call. A short
  // message that the kernel takes at once does not wait for a turn of the reactor.
  boost::asio::awaitable<std::optional<Failure>> write_all(
      std::span<const boost::asio::const_buffer> buffers);
  // Reads at least `at_least` bytes into `target` and returns how many came.
  boost::asio::awaitable<IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                          std::size_t at_least) override;
  std::size_t read_at_once(std::span<std::byte> target) override;

  // Waits for the first byte from the other end, and leaves it there. None: there will be none.
  boost::asio::awaitable<std::optional<std::byte>> first_byte();
  // Called after the last write: announces the end, and reads what the other end still sends, up to
  // a bound, until it closes. Closing at once could lose the last bytes on their way to it.
  boost::asio::awaitable<void> finish();

  // The connection without the stream, which is closed from now on: to be read and written without
  // the reactor. No read or write is under way.
  struct Released {
    FileDescriptor socket;
    std::unique_ptr<TlsRecords> tls;  // null: plain TCP
  };
  Released release();

  bool is_open() const { return socket_.is_open(); }
  void close();
  boost::asio::any_io_executor get_executor() { return socket_.get_executor(); }
  // To connect it, set its options and ask for addresses; never to read or write.
  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }

  // Bytes per system call.
  static constexpr std::size_t max_transfer_bytes = std::size_t{4} << 20;
  // Bytes that are sent between two turns of the reactor: a turn costs more than to send so little.
  // More would keep the other connections of the thread waiting.
  static constexpr std::size_t max_at_once_bytes = std::size_t{16} << 10;
  // Likewise of bytes that are read.
  static constexpr std::size_t max_read_at_once_bytes = std::size_t{1} << 20;

 private:
  void sleep_until(std::size_t bytes);

  Socket socket_;
  std::unique_ptr<TlsSession> tls_;  // null: plain TCP
  bool reads_bulk_ = false;
  std::size_t at_once_bytes_ = 0;       // sent since the last turn of the reactor
  std::size_t read_at_once_bytes_ = 0;  // likewise
  int low_water_ = 1;                   // as the kernel has it
};

// Sets up a connected socket for bulk replies: no Nagle delay, keep-alive (a host that vanished is
// noticed while idle), and reno where both ends are on loopback, because BBR halves throughput
// there. Other connections have the congestion control of the system. Failures cost speed only and
// are ignored.
void tune(boost::asio::ip::tcp::socket& socket);

}  // namespace dpwa::net
