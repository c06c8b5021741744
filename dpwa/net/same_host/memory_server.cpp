#include "dpwa/net/same_host/memory_server.h"

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "dpwa/ipc/unix_socket.h"
#include "dpwa/net/admission.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/same_host/offer.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using net::Failure;

namespace {

constexpr auto nameless = "a process of this host";

}  // namespace

MemoryServer::MemoryServer(asio::io_context& io, LocalProcess& local, Terms terms)
    : io_(io),
      local_(local),
      terms_(std::move(terms)),
      accepts_(
          io, [this](MemoryExchange::Socket socket) { admit(std::move(socket)); },
          [this](const std::string& error) {
            terms_.report({Failure::Kind::accept, error}, "same host");
          }) {}

bool MemoryServer::listen() {
  offer_ = offer_socket(accepts_.acceptor(), terms_.subsystem, terms_.callers);
  return !offer_.empty();
}

void MemoryServer::serve() {
  if (!offer_.empty()) accepts_.run();
}

void MemoryServer::stop() {
  thread_.check();
  stopped_ = true;
  if (accepts_.acceptor().is_open()) ipc::stop_listening(accepts_.acceptor().native_handle());
  accepts_.stop();
  for (const Exchange& exchange : exchanges_) exchange->close();
}

void MemoryServer::admit(MemoryExchange::Socket socket) {
  thread_.check();
  const bool ours = ipc::admits(socket.native_handle());
  if (!ours || stopped_ || exchanges_.size() >= terms_.most_connections) {
    ++local_.traffic.connections_refused;
    const Failure failure(ours ? Failure::Kind::limit : Failure::Kind::user,
                          ours ? "more connections than transport.max_connections"
                               : "refused a process of another user");
    terms_.report(failure, "same host");
    return;  // the socket closes here
  }
  ++local_.traffic.connections_accepted;
  auto exchange = std::make_shared<MemoryExchange>(std::move(socket));
  exchanges_.push_back(exchange);
  asio::co_spawn(io_, serve(exchange), [this, exchange](std::exception_ptr failure) {
    exchange->close();
    exchanges_.remove(exchange);
    const auto why = net::internal_failure(std::move(failure));
    if (why) terms_.report(*why, nameless);
  });
}

void MemoryServer::failed(const Failure& failure, const std::string& peer) {
  if (!failure.is_protocol()) return;
  ++local_.traffic.protocol_errors;
  terms_.report({Failure::Kind::protocol, "connection closed: " + failure.detail}, peer);
}

asio::awaitable<void> MemoryServer::serve(Exchange exchange) {
  const auto peer = co_await handshake(*exchange);
  if (!peer) {
    ++local_.traffic.connections_refused;
    co_return;
  }
  terms_.begins(*peer, exchange);
  wire::Welcome welcome;
  welcome.node = local_.name;
  welcome.incarnation = local_.incarnation;
  welcome.capabilities = wire::capability(Codec::raw);
  welcome.state = local_.state.load();
  exchange->send(wire::encode(welcome, 1));
  const Failure end = co_await exchange->run();
  failed(end, peer->name);
  if (terms_.ends) terms_.ends(*peer, exchange, end.detail);
}

asio::awaitable<std::optional<MemoryServer::Peer>> MemoryServer::handshake(
    MemoryExchange& exchange) {
  const TimePoint until = std::chrono::steady_clock::now() + terms_.handshake_time;
  const net::Deadline deadline(io_.get_executor(), until, [&exchange] { exchange.close(); });
  constexpr auto expected = net::types(wire::MessageType::hello);
  const auto frame = co_await exchange.read(expected);
  if (!frame) {
    failed(frame.error(), nameless);
    co_return std::nullopt;
  }
  const auto hello = wire::decode_hello(frame->body);
  if (!hello) {
    failed(hello.error(), nameless);
    co_return std::nullopt;
  }
  auto reject = examine_hello(*hello, local_);
  const bool fits =
      hello->role == wire::Role::node && hello->fingerprint == local_.manifest.fingerprint();
  if (!reject && !fits) reject = wire::Reject{wire::RejectCode::model, "the models differ"};
  if (reject) {
    terms_.report({Failure::Kind::rejected, "refused: " + reject->reason, reject->code}, nameless);
    wire::Reject answer = std::move(*reject);
    co_await exchange.refuse(std::move(answer), frame->header.request_id);
    co_return std::nullopt;
  }
  Peer peer{hello->node, hello->incarnation};
  co_return peer;
}

}  // namespace dpwa::same_host
