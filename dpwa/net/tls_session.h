#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/net/coroutine.h"
#include "dpwa/net/failure.h"
#include "dpwa/security/tls_context.h"

namespace dpwa::net {

// TLS over one connected socket. Records are sealed into a batch that fits into the second-level
// cache and leaves in one system call; reading takes as many records per call as have arrived, but
// gives the other work of the thread its turn after every max_records_in_a_row. A session ticket,
// or more changes of keys than max_key_updates(), ends the connection as a protocol failure. After
// a failure, or once the socket is closed, only destruction is allowed. The calling thread is the
// socket's; at most one read at a time; writes take turns.
class TlsSession {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  static constexpr unsigned max_records_in_a_row = 256;
  // The most changes of keys on a connection that has brought so many bytes. OpenSSL makes none by
  // itself; an end that made one at the limit of AES-GCM (2^24.5 records) would stay below.
  static constexpr std::uint64_t max_key_updates(std::uint64_t bytes) { return 16 + (bytes >> 24); }

  // `calls`: this end called, the other is the called. The socket outlives this.
  TlsSession(Socket& socket, std::shared_ptr<const TlsContext> context, bool calls);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // None: both ends have proved their identity. Otherwise the other end has been told by a TLS
  // alert.
  boost::asio::awaitable<std::optional<Failure>> shake_hands();
  boost::asio::awaitable<boost::system::error_code> write_all(
      std::span<const boost::asio::const_buffer> buffers);
  // Bytes that arrived before the end of the connection are delivered before the end is reported.
  boost::asio::awaitable<IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                          std::size_t at_least);
  // The names in the other end's certificate; none where certificates are not used.
  std::optional<std::vector<std::string>> certified_names() const;

 private:
  friend struct TlsSocketMethods;
  boost::asio::awaitable<boost::system::error_code> flush();  // the turn to write is the caller's
  boost::asio::awaitable<boost::system::error_code> flush_for_reader();
  boost::asio::awaitable<boost::system::error_code> readable();
  boost::asio::awaitable<boost::system::error_code> turn_of_others();
  bool seal(std::span<const std::byte> bytes);
  Failure failure(int result);

  Socket& socket_;
  const std::shared_ptr<const TlsContext> context_;
  const bool calls_;
  bool established_ = false;
  OfferedKey offered_;
  std::vector<std::byte> sealed_;  // by OpenSSL, for a write, or as its reply to a read
  std::vector<std::byte> in_flight_;
  Turns writing_;
  int receive_error_ = 0;          // errno of the last receive that failed
  bool ended_ = false;             // the other end has closed
  unsigned records_in_a_row_ = 0;  // read since the other work of the thread had its turn
  std::uint64_t bytes_read_ = 0;
  std::uint64_t key_updates_ = 0;    // by the other end
  std::optional<Failure> ended_by_;  // nothing more can be read
  const char* breach_ = nullptr;     // the act of the other end that ended reading
  SslPointer ssl_;
};

}  // namespace dpwa::net
