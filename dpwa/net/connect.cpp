#include "dpwa/net/connect.h"

#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "dpwa/net/admission.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/host_names.h"
#include "dpwa/net/stream.h"
#include "dpwa/security/security.h"
#include "dpwa/wire/messages.h"

namespace dpwa::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using wire::MessageType;

namespace {

// None: the certificate, where there is one, is for `name`.
std::optional<Failure> wrong_certificate(const Stream& stream, const std::string& name) {
  const auto names = stream.certified_names();
  if (is_for(names, name)) return std::nullopt;
  return Failure(Failure::Kind::security, "shows a certificate for " + words_for(*names));
}

// Sends a HELLO, and the manifest where that is asked for; null: there is none.
asio::awaitable<IoResult<wire::Welcome>> introduce(Connection& connection, wire::Hello hello,
                                                   const Manifest* manifest,
                                                   std::uint32_t request_id) {
  auto encoded = wire::encode(hello, request_id);
  auto broken = co_await connection.send(std::move(encoded));
  if (broken) co_return std::move(*broken);
  Expected replies(types(MessageType::welcome, MessageType::reject));
  if (manifest != nullptr) replies.types.add(MessageType::manifest_request);
  auto frame = co_await connection.receive(replies);
  if (frame && frame->header.type == MessageType::manifest_request) {
    encoded = wire::encode(*manifest, frame->header.request_id);
    broken = co_await connection.send(std::move(encoded));
    if (broken) co_return std::move(*broken);
    frame = co_await connection.receive(replies);
  }
  if (!frame) co_return frame.error();
  if (frame->header.type == MessageType::reject) {
    const auto reject = wire::decode_reject(frame->body);
    Failure failure = reject ? Failure(*reject) : Failure(reject.error());
    co_return failure;
  }
  if (frame->header.type != MessageType::welcome) {
    Failure failure(Failure::Kind::protocol, "asked for the manifest again");
    co_return failure;
  }
  auto welcome = wire::decode_welcome(frame->body);
  if (welcome) co_return std::move(*welcome);
  Failure failure(welcome.error());
  co_return failure;
}

// Secures a connection and exchanges HELLO and WELCOME over it.
asio::awaitable<IoResult<wire::Welcome>> shake_hands(Connection& connection, LocalProcess& local,
                                                     const PeerAddress& peer,
                                                     std::uint32_t request_id) {
  auto failure = co_await secure(connection.stream(), peer, local.security.get());
  if (failure) co_return std::move(*failure);
  wire::Hello hello{wire::Role::node, local.capabilities(), local.cluster,
                    local.name,       local.incarnation,    local.stated_fingerprint()};
  auto welcome = co_await introduce(connection, std::move(hello), &local.manifest, request_id);
  if (welcome && !peer.name.empty() && welcome->node != peer.name) {
    welcome = Failure(Failure::Kind::rejected,
                      "the node at this address calls itself '" + welcome->node + "'");
  } else if (welcome) {
    failure = wrong_certificate(connection.stream(), welcome->node);
    if (failure) welcome = std::move(*failure);
  }
  co_return welcome;
}

// For the connection to one of several addresses of a peer, unless it is the last one: so each is
// tried within the deadline of a pull (gossip.timeout_ms) by default.
constexpr auto time_of_an_address = std::chrono::milliseconds(200);

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

asio::awaitable<std::optional<Failure>> connect(tcp::socket& socket, const PeerAddress& peer) {
  boost::system::error_code last = asio::error::host_not_found;
  const std::vector<std::string> addresses = addresses_now(peer);
  for (const std::string& text : addresses) {
    boost::system::error_code ignored;
    const auto address = asio::ip::make_address(text, ignored);
    if (ignored) continue;  // a name that was not known yet
    socket.close(ignored);
    const tcp::endpoint endpoint(address, peer.port);
    const bool is_last = &text == &addresses.back();
    const TimePoint until =
        is_last ? TimePoint::max() : std::chrono::steady_clock::now() + time_of_an_address;
    const Deadline next(socket.get_executor(), until, [&socket] {
      boost::system::error_code closed;
      socket.cancel(closed);
    });
    const auto [error] = co_await socket.async_connect(endpoint, as_result);
    last = error;
    if (addresses.size() > 1) note_try(text, peer.port, !error);
    if (!socket.is_open()) {  // the deadline has passed, however this attempt ended
      last = asio::error::operation_aborted;
      break;
    }
    if (!error) break;
  }
  std::optional<Failure> failure;
  if (last) {
    failure.emplace(last);
    resolve_again(peer);
  }
  co_return failure;
}

asio::awaitable<std::optional<Failure>> secure(Stream& stream, const PeerAddress& peer,
                                               const Security* security) {
  std::optional<Failure> failure;
  if (security == nullptr) co_return failure;
  failure = co_await stream.secure(security->context(), /*calls=*/true);
  if (!failure && !peer.name.empty()) failure = wrong_certificate(stream, peer.name);
  co_return failure;
}

asio::awaitable<IoResult<wire::Welcome>> open_connection(Connection& connection,
                                                         LocalProcess& local,
                                                         const PeerAddress& peer,
                                                         std::uint32_t request_id) {
  connection.incoming().clear();
  Stream::Socket& socket = connection.stream().socket();
  auto failure = co_await connect(socket, peer);
  if (failure) co_return std::move(*failure);
  tune(socket);
  auto welcome = co_await shake_hands(connection, local, peer, request_id);
  // Another machine may have the address by now.
  if (!welcome) resolve_again(peer);
  co_return welcome;
}

asio::awaitable<IoResult<wire::Welcome>> open_as_observer(Connection& connection,
                                                          const std::string& cluster,
                                                          const PeerAddress& node,
                                                          const Security* security) {
  auto failure = co_await connect(connection.stream().socket(), node);
  if (!failure) failure = co_await secure(connection.stream(), node, security);
  if (failure) co_return std::move(*failure);
  wire::Hello hello;
  hello.role = wire::Role::observer;
  hello.capabilities = wire::capability(Codec::raw);
  hello.cluster = cluster;
  constexpr std::uint32_t request_id = 1;
  co_return co_await introduce(connection, std::move(hello), nullptr, request_id);
}

asio::awaitable<std::optional<Failure>> secure_inbound(Stream& stream, const Security* security) {
  std::optional<Failure> failure;
  const auto first = co_await stream.first_byte();
  if (!first) {  // must not be read again: after a peek at the end nothing more comes
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
                              "the called node speaks TLS only (security.mode)"};
    const auto frame = wire::encode(reject, 0);
    co_await stream.write_all(frame);
    failure = refused("speaks no TLS (is its security mode insecure?)");
  } else {
    failure = co_await stream.secure(security->context(), /*calls=*/false);
  }
  co_return failure;
}

}  // namespace dpwa::net
