#include "dpwa/net/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "dpwa/base/on_exit.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/tls_failure.h"
#include "dpwa/security/openssl.h"

namespace dpwa::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;
// Plain bytes that are sealed before they are sent. They and their records stay in the second-level
// cache together with the socket's own copy.
constexpr std::size_t batch_bytes = 16 * record_bytes;

// Memory for batches that no write uses at the moment: with many connections few write at once. A
// fresh block for each write would cost more in page faults than the sealing.
class SpareBatches {
 public:
  std::vector<std::byte> take() {
    std::vector<std::byte> batch;
    if (spare_.empty()) {
      batch.reserve(batch_bytes + batch_bytes / 8);
    } else {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
    return batch;
  }
  void give_back(std::vector<std::byte> batch) {
    constexpr std::size_t most = 4;
    batch.clear();
    if (spare_.size() < most) spare_.push_back(std::move(batch));
  }

 private:
  std::vector<std::vector<std::byte>> spare_;
};

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wexit-time-destructors"  // it ends with its thread
#endif
SpareBatches& spare_batches() {
  thread_local SpareBatches spare;
  return spare;
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace

// The functions by which OpenSSL reads from a session and writes to it.
struct TlsSocketMethods {
  static TlsSession& session_of(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }

  static int receive(BIO* bio, char* target, std::size_t size, std::size_t* count) {
    TlsSession& session = session_of(bio);
    BIO_clear_retry_flags(bio);
    ssize_t got = 0;
    do {
      got = ::recv(session.socket_.native_handle(), target, size, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
      *count = static_cast<std::size_t>(got);
      return 1;
    }
    *count = 0;
    session.ended_ = got == 0;
    if (got == 0) return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      BIO_set_retry_read(bio);
    } else {
      session.receive_error_ = errno;
    }
    return -1;
  }

  static int send(BIO* bio, const char* bytes, std::size_t size, std::size_t* count) {
    auto& sealed = session_of(bio).sealed_;
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
    if (command == BIO_CTRL_EOF) return session_of(bio).ended_ ? 1 : 0;
    return 0;
  }

  // Called for every message of TLS itself before it is acted on. OpenSSL goes through all of these
  // that keep coming within one read, unless it holds the other end to have closed.
  static void notice(int sent, int, int content, const void* bytes, std::size_t size, SSL* ssl,
                     void* argument) {
    if (sent != 0 || content != SSL3_RT_HANDSHAKE || size == 0) return;
    TlsSession& session = *static_cast<TlsSession*>(argument);
    const int type = *static_cast<const unsigned char*>(bytes);
    if (type == SSL3_MT_NEWSESSION_TICKET) {
      session.breach_ = "sent a TLS session ticket, which this protocol does not have";
    } else if (type == SSL3_MT_KEY_UPDATE &&
               ++session.key_updates_ > TlsSession::max_key_updates(session.bytes_read_)) {
      session.breach_ = "changed its TLS keys too often";
    }
    if (session.breach_ != nullptr) SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);
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

TlsSession::TlsSession(Socket& socket, std::shared_ptr<const TlsContext> context, bool calls)
    : socket_(socket),
      context_(std::move(context)),
      calls_(calls),
      writing_(socket.get_executor()),
      ssl_(context_->begin(calls, &offered_)) {
  BIO* bio = BIO_new(TlsSocketMethods::get());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_.get(), bio, bio);  // which owns it
  SSL_set_msg_callback(ssl_.get(), TlsSocketMethods::notice);
  SSL_set_msg_callback_arg(ssl_.get(), this);
}

TlsSession::~TlsSession() = default;

asio::awaitable<error_code> TlsSession::flush() {
  error_code failed;
  while (!sealed_.empty() && !failed) {
    in_flight_.swap(sealed_);
    const auto condition = [](const error_code& error, std::size_t) {
      return error ? std::size_t{0} : std::size_t{4} << 20;
    };
    const auto buffer = asio::buffer(in_flight_.data(), in_flight_.size());
    const auto [error, written] = co_await asio::async_write(socket_, buffer, condition, as_result);
    in_flight_.clear();
    if (sealed_.empty()) sealed_.swap(in_flight_);  // the same memory again
    failed = error;
  }
  co_return failed;
}

asio::awaitable<error_code> TlsSession::flush_for_reader() {
  error_code failed;
  if (writing_.taken()) co_return failed;  // the writer takes it along
  co_await writing_.take();
  const OnExit over([this] { writing_.give_back(); });
  failed = co_await flush();
  co_return failed;
}

asio::awaitable<error_code> TlsSession::readable() {
  records_in_a_row_ = 0;
  const auto [error] = co_await socket_.async_wait(Socket::wait_read, as_result);
  co_return error;
}

asio::awaitable<error_code> TlsSession::turn_of_others() {
  records_in_a_row_ = 0;
  co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  error_code error;
  if (!socket_.is_open()) error = asio::error::operation_aborted;
  co_return error;
}

asio::awaitable<std::optional<Failure>> TlsSession::shake_hands() {
  std::optional<Failure> outcome;
  while (!established_) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    const bool waits = result != 1 && SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ;
    if (result != 1 && !waits) outcome = failure(result);
    auto error = co_await flush();  // of what tells the other end, too
    if (outcome) co_return outcome;
    established_ = result == 1;
    if (!error && waits) error = co_await readable();
    if (error) {
      outcome.emplace(error);
      co_return outcome;
    }
  }
  const bool by_key = !context_->has_certificates();
  if (by_key && SSL_session_reused(ssl_.get()) != 1) {
    outcome = Failure(Failure::Kind::security, "proved no cluster key");
  }
  co_return outcome;
}

// False: nothing more can be sent.
bool TlsSession::seal(std::span<const std::byte> bytes) {
  std::size_t count = 0;
  ERR_clear_error();
  const bool sealed = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count) == 1;
  ERR_clear_error();
  return sealed && count == bytes.size();
}

asio::awaitable<error_code> TlsSession::write_all(std::span<const asio::const_buffer> buffers) {
  // Buffers before the parameters travel in the same record as the first parameters.
  std::array<std::byte, record_bytes> joined;
  std::size_t joined_bytes = 0;
  error_code error;
  co_await writing_.take();
  const OnExit over([this] { writing_.give_back(); });
  const std::vector<std::byte> waiting = std::exchange(sealed_, spare_batches().take());
  sealed_.insert(sealed_.end(), waiting.begin(), waiting.end());
  for (std::size_t i = 0; i < buffers.size() && !error; ++i) {
    std::span rest(static_cast<const std::byte*>(buffers[i].data()), buffers[i].size());
    const bool last = i + 1 == buffers.size();
    if (!last || joined_bytes > 0) {
      const std::size_t taken = std::min(rest.size(), joined.size() - joined_bytes);
      std::memcpy(joined.data() + joined_bytes, rest.data(), taken);
      joined_bytes += taken;
      rest = rest.subspan(taken);
      if (joined_bytes == joined.size() || last) {
        const bool done = seal(std::span(joined).first(joined_bytes));
        if (!done) error = asio::error::broken_pipe;
        joined_bytes = 0;
      }
    }
    while (!rest.empty() && !error) {
      const auto part = rest.first(std::min(rest.size(), batch_bytes));
      const bool done = seal(part);
      if (!done) {
        error = asio::error::broken_pipe;
      } else {
        rest = rest.subspan(part.size());
        if (sealed_.size() >= batch_bytes) error = co_await flush();
      }
    }
  }
  if (!error) error = co_await flush();
  spare_batches().give_back(std::exchange(sealed_, {}));
  co_return error;
}

asio::awaitable<IoResult<std::size_t>> TlsSession::read_some(std::span<std::byte> target,
                                                             std::size_t at_least) {
  std::size_t have = 0;
  if (ended_by_) {
    Failure failed = *ended_by_;
    co_return failed;
  }
  while (have < target.size()) {
    if (records_in_a_row_ == max_records_in_a_row) {
      const auto error = co_await turn_of_others();
      if (error) {
        Failure failed(error);
        co_return failed;
      }
    }
    ++records_in_a_row_;
    ERR_clear_error();
    std::size_t count = 0;
    const int result = SSL_read_ex(ssl_.get(), target.data() + have, target.size() - have, &count);
    if (breach_ != nullptr) {
      Failure failed(Failure::Kind::protocol, breach_);
      co_return failed;
    }
    if (result == 1) {
      have += count;
      bytes_read_ += count;
      continue;
    }
    if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
      Failure failed = failure(result);
      co_await flush_for_reader();  // the alert that says why
      ended_by_ = failed;
      if (have > 0 && have >= at_least) break;  // all that was asked for came before the end
      co_return failed;
    }
    if (have >= at_least) break;
    auto error = co_await flush_for_reader();  // the answer to a key update
    if (!error) error = co_await readable();
    if (error) {
      Failure failed(error);
      co_return failed;
    }
  }
  co_return have;
}

Failure TlsSession::failure(int result) {
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

std::optional<std::vector<std::string>> TlsSession::certified_names() const {
  if (!context_->has_certificates()) return std::nullopt;
  const CertificatePointer certificate(SSL_get1_peer_certificate(ssl_.get()));
  return certificate ? names_of(certificate.get()) : std::vector<std::string>();
}

}  // namespace dpwa::net
