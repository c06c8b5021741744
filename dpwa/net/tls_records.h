#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/net/failure.h"
#include "dpwa/security/tls_context.h"

namespace dpwa::net {

// TLS of one connection, without waiting. It receives from the socket by itself, as many records
// per call as have arrived, but sends nothing: what is to leave collects in sealed(). A session
// ticket, or more changes of keys than max_key_updates(), ends the connection as a protocol
// failure. After a failure only destruction is allowed, once what is sealed has left. One thread.
class TlsRecords {
 public:
  // The most changes of keys on a connection that has brought so many bytes. OpenSSL makes none by
  // itself; an end that made one at the limit of AES-GCM (2^24.5 records) would stay below.
  static constexpr std::uint64_t max_key_updates(std::uint64_t bytes) { return 16 + (bytes >> 24); }

  // `socket`: where to receive, asked each time. `calls`: this end called, the other is the called.
  // `reads_bulk`: as TlsContext::begin() has it.
  TlsRecords(std::function<int()> socket, std::shared_ptr<const TlsContext> context, bool calls,
             bool reads_bulk);
  TlsRecords(const TlsRecords&) = delete;
  TlsRecords& operator=(const TlsRecords&) = delete;

  // From now on.
  void receive_from(std::function<int()> socket) { socket_ = std::move(socket); }

  // True: both ends have proved their identity, once what is sealed has left. False: the other end
  // has to send more. After a failure an alert for the other end is sealed.
  IoResult<bool> shake_hands();
  // False: nothing more can be sent.
  bool seal(std::span<const std::byte> bytes);
  // At most one record; 0: nothing is there. Bytes that arrived before the end of the connection
  // are delivered before the end is reported.
  IoResult<std::size_t> open(std::span<std::byte> target);
  // By a write, or as the reply to what was received.
  std::vector<std::byte>& sealed() { return sealed_; }

  // The names in the other end's certificate; none where certificates are not used.
  std::optional<std::vector<std::string>> certified_names() const;

 private:
  friend struct TlsSocketMethods;
  Failure failure(int result);

  std::function<int()> socket_;
  const std::shared_ptr<const TlsContext> context_;
  const bool calls_;
  bool established_ = false;
  OfferedKey offered_;
  std::vector<std::byte> sealed_;
  int receive_error_ = 0;  // errno of the last receive that failed
  bool ended_ = false;     // the other end has closed
  std::uint64_t bytes_read_ = 0;
  std::uint64_t key_updates_ = 0;  // by the other end
  const char* breach_ = nullptr;   // the act of the other end that ended reading
  SslPointer ssl_;
};

}  // namespace dpwa::net
