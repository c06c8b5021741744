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

#include "dpwa/net/coroutine.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/tls_records.h"
#include "dpwa/security/tls_context.h"

namespace dpwa::net {

// TLS over one connected socket. Records are sealed into a batch that fits into the second-level
// cache and leaves in one system call; reading takes as many records per call as have arrived, but
// gives the other work of the thread its turn after every max_records_in_a_row. After a failure, or
// once the socket is closed, only destruction is allowed. The calling thread is the socket's; at
// most one read at a time; writes take turns.
class TlsSession {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  static constexpr unsigned max_records_in_a_row = 256;
  // `calls`: this end called, the other is the called. `reads_bulk`: as TlsContext::begin() has it.
  // The socket outlives this.
  TlsSession(Socket& socket, std::shared_ptr<const TlsContext> context, bool calls,
             bool reads_bulk);
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
  std::optional<std::vector<std::string>> certified_names() const {
    return records_->certified_names();
  }
  // Hands the connection over, to be read and written without this object, which is of no further
  // use. No read or write is under way. The receiver says where to receive.
  std::unique_ptr<TlsRecords> release() { return std::move(records_); }

 private:
  boost::asio::awaitable<boost::system::error_code> flush();  // the turn to write is the caller's
  boost::asio::awaitable<boost::system::error_code> flush_for_reader();
  boost::asio::awaitable<boost::system::error_code> readable();
  boost::asio::awaitable<boost::system::error_code> turn_of_others();

  Socket& socket_;
  std::unique_ptr<TlsRecords> records_;
  std::vector<std::byte>& sealed_;  // of records_
  std::vector<std::byte> in_flight_;
  Turns writing_;
  unsigned records_in_a_row_ = 0;    // read since the other work of the thread had its turn
  std::optional<Failure> ended_by_;  // nothing more can be read
};

}  // namespace dpwa::net
