#include "dpwa/net/inbound.h"

#include <array>
#include <boost/asio/use_awaitable.hpp>
#include <span>

#include "dpwa/security/security.h"
#include "dpwa/wire/messages.h"

namespace dpwa::net {

namespace asio = boost::asio;

namespace {

constexpr std::byte tls_handshake_record{22};
// A fatal alert "protocol version", as a record in the clear: what TLS says to a version that it
// does not speak.
constexpr std::array<std::byte, 7> no_tls_here{std::byte{21}, std::byte{3}, std::byte{3},
                                               std::byte{0},  std::byte{2}, std::byte{2},
                                               std::byte{70}};

std::optional<Failure> refused(const char* what) {
  return Failure(Failure::Kind::security, what);
}

}  // namespace

asio::awaitable<std::optional<Failure>> secure_inbound(Stream& stream, const Security* security) {
  std::optional<Failure> failure;
  const auto first = co_await stream.first_byte();
  if (!first) {  // not to be read again: a peek that saw the end leaves nothing to wait for
    failure.emplace();
    co_return failure;
  }
  const bool speaks_tls = *first == tls_handshake_record;
  if (security == nullptr && !speaks_tls) co_return failure;
  if (security == nullptr) {
    co_await stream.write_all(std::span(no_tls_here));
    failure = refused("speaks TLS, which this node does not (security.mode)");
  } else if (!speaks_tls) {
    const wire::Reject reject{wire::RejectCode::security,
                              "this node speaks TLS only (security.mode)"};
    const auto frame = wire::encode(reject, 0);
    co_await stream.write_all(frame);
    failure = refused("speaks no TLS (is its security mode insecure?)");
  } else {
    failure = co_await stream.secure(security->context(), /*calls=*/false);
  }
  co_return failure;
}

}  // namespace dpwa::net
