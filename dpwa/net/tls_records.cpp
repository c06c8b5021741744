#include "dpwa/net/tls_records.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "dpwa/net/io_thread.h"
#include "dpwa/net/tls_failure.h"
#include "dpwa/security/openssl.h"

namespace dpwa::net {

// The functions by which OpenSSL receives and sends.
struct TlsSocketMethods {
  static TlsRecords& records_of(BIO* bio) { return *static_cast<TlsRecords*>(BIO_get_data(bio)); }

  static int receive(BIO* bio, char* target, std::size_t size, std::size_t* count) {
    TlsRecords& records = records_of(bio);
    BIO_clear_retry_flags(bio);
    ssize_t got = 0;
    do {
      got = ::recv(records.socket_(), target, size, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
      *count = static_cast<std::size_t>(got);
      return 1;
    }
    *count = 0;
    records.ended_ = got == 0;
    if (got == 0) return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      BIO_set_retry_read(bio);
    } else {
      records.receive_error_ = errno;
    }
    return -1;
  }

  static int send(BIO* bio, const char* bytes, std::size_t size, std::size_t* count) {
    auto& sealed = records_of(bio).sealed_;
    const auto* first = reinterpret_cast<const std::byte*>(bytes);
    try {
      sealed.insert(sealed.end(), first, first + size);
    } catch (const std::bad_alloc&) {
      // An exception cannot pass through OpenSSL, which would hold the peer to blame.
      end_for_want_of_memory();
    }
    *count = size;
    return 1;
  }

  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_FLUSH) return 1;
    if (command == BIO_CTRL_EOF) return records_of(bio).ended_ ? 1 : 0;
    return 0;
  }

  // Called for every message of TLS itself before it is acted on. OpenSSL goes through all of these
  // that keep coming within one read, unless it holds the other end to have closed.
  static void notice(int sent, int, int content, const void* bytes, std::size_t size, SSL* ssl,
                     void* argument) {
    if (sent != 0 || content != SSL3_RT_HANDSHAKE || size == 0) return;
    TlsRecords& records = *static_cast<TlsRecords*>(argument);
    const int type = *static_cast<const unsigned char*>(bytes);
    if (type == SSL3_MT_NEWSESSION_TICKET) {
      records.breach_ = "sent a TLS session ticket, which this protocol does not have";
    } else if (type == SSL3_MT_KEY_UPDATE &&
               ++records.key_updates_ > TlsRecords::max_key_updates(records.bytes_read_)) {
      records.breach_ = "changed its TLS keys too often";
    }
    if (records.breach_ != nullptr) SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);
  }

  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }

  static const BIO_METHOD* get() {
    static BIO_METHOD* const methods = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "dpwa socket");
      if (made == nullptr) throw std::bad_alloc();
      BIO_meth_set_read_ex(made, receive);
      BIO_meth_set_write_ex(made, send);
      BIO_meth_set_ctrl(made, control);
      BIO_meth_set_create(made, create);
      return made;
    }();
    return methods;
  }
};

TlsRecords::TlsRecords(std::function<int()> socket, std::shared_ptr<const TlsContext> context,
                       bool calls, bool reads_bulk)
    : socket_(std::move(socket)),
      context_(std::move(context)),
      calls_(calls),
      ssl_(context_->begin(calls, reads_bulk, &offered_)) {
  BIO* bio = BIO_new(TlsSocketMethods::get());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_.get(), bio, bio);  // which owns it
  SSL_set_msg_callback(ssl_.get(), TlsSocketMethods::notice);
  SSL_set_msg_callback_arg(ssl_.get(), this);
}

IoResult<bool> TlsRecords::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1 && SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return false;
  if (result != 1) return failure(result);
  established_ = true;
  const bool by_key = !context_->has_certificates();
  if (by_key && SSL_session_reused(ssl_.get()) != 1)
    return Failure(Failure::Kind::security, "proved no cluster key");
  return true;
}

bool TlsRecords::seal(std::span<const std::byte> bytes) {
  std::size_t count = 0;
  ERR_clear_error();
  const bool sealed = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count) == 1;
  ERR_clear_error();
  return sealed && count == bytes.size();
}

IoResult<std::size_t> TlsRecords::open(std::span<std::byte> target) {
  ERR_clear_error();
  std::size_t count = 0;
  const int result = SSL_read_ex(ssl_.get(), target.data(), target.size(), &count);
  if (breach_ != nullptr) return Failure(Failure::Kind::protocol, breach_);
  if (result == 1) {
    bytes_read_ += count;
    return count;
  }
  if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return std::size_t{0};
  return failure(result);
}

Failure TlsRecords::failure(int result) {
  const int kind = SSL_get_error(ssl_.get(), result);
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  const bool closed = ended_ || kind == SSL_ERROR_ZERO_RETURN;
  if (closed && !established_ && receive_error_ == 0)
    return {Failure::Kind::ended, "the connection was closed during the TLS handshake"};
  if (closed) return {Failure::Kind::ended, "the connection was closed"};
  if (receive_error_ != 0)
    return {Failure::Kind::ended, std::generic_category().message(receive_error_)};
  return tls_failure({ssl_.get(), context_->has_certificates(), calls_, established_, offered_},
                     error);
}

std::optional<std::vector<std::string>> TlsRecords::certified_names() const {
  if (!context_->has_certificates()) return std::nullopt;
  const CertificatePointer certificate(SSL_get1_peer_certificate(ssl_.get()));
  return certificate ? names_of(certificate.get()) : std::vector<std::string>();
}

}  // namespace dpwa::net
