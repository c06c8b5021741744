#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/net/io_result.h"
#include "dpwa/security/tls_context.h"

namespace dpwa::net {

// TLS over one connected socket. Records are sealed into a batch that fits into the second-level
// cache and leaves in one system call; reading takes as many records per call as have arrived.
// After a failure, or once the socket is closed, only destruction is allowed. The calling thread is
// the socket's; one call at a time.
class TlsSession {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  // `calls`: this end called, the other is the called. The socket outlives this.
  TlsSession(Socket& socket, std::shared_ptr<const TlsContext> context, bool calls);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // None: both ends have proved who they are. Else the other end has been told (TLS alert).
  boost::asio::awaitable<std::optional<IoFailure>> shake_hands();
  boost::asio::awaitable<boost::system::error_code> write_all(
      std::span<const boost::asio::const_buffer> buffers);
  boost::asio::awaitable<IoResult<std::size_t>> read_some(std::span<std::byte> target,
                                                          std::size_t at_least);
  // The names in the other end's certificate; none where certificates are not used.
  std::optional<std::vector<std::string>> certified_names() const;

 private:
  friend struct TlsSocketMethods;
  boost::asio::awaitable<boost::system::error_code> flush();
  boost::asio::awaitable<boost::system::error_code> readable();
  bool seal(std::span<const std::byte> bytes);
  IoFailure failure(int result);

  Socket& socket_;
  const std::shared_ptr<const TlsContext> context_;
  const bool calls_;
  bool established_ = false;
  OfferedKey offered_;
  std::vector<std::byte> sealed_;  // on its way out
  int receive_error_ = 0;          // errno of the last receive that failed
  bool ended_ = false;             // the other end has closed
  SslPointer ssl_;
};

}  // namespace dpwa::net
