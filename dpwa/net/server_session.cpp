#include "dpwa/net/server_session.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "dpwa/base/on_exit.h"
#include "dpwa/kvstore/link_limits.h"
#include "dpwa/log/log.h"
#include "dpwa/net/admission.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/network.h"
#include "dpwa/net/node_handlers.h"
#include "dpwa/net/socket_progress.h"

namespace dpwa {

namespace asio = boost::asio;
using asio::ip::tcp;
using net::Failure;
using wire::MessageType;

namespace {

// The failure with `words` before its detail, for the log.
Failure with_words(const Failure& failure, const std::string& words) {
  return {failure.kind, words + failure.detail, failure.reject};
}

}  // namespace

ServerSession::ServerSession(tcp::socket socket, ServerSessionHost& host)
    : connection_(std::move(socket)),
      host_(host),
      local_(host.local),
      requests_(host.options.max_requests_per_second, stream().get_executor()),
      writing_(stream().get_executor()),
      wake_(stream().get_executor()) {
  boost::system::error_code error;
  const auto remote = stream().socket().remote_endpoint(error);
  requester_.address = error ? "peer" : net::text_of(remote.address());
  requester_.network = facts_.address = net::network_of(requester_.address);
  enter(ConnectionFacts::Phase::handshake);
}

void ServerSession::enter(ConnectionFacts::Phase phase) {
  if (facts_.phase == ConnectionFacts::Phase::closing) return;
  facts_.phase = phase;
  facts_.since = std::chrono::steady_clock::now();
}

void ServerSession::start() {
  host_.thread.check();
  auto self = shared_from_this();
  asio::co_spawn(stream().get_executor(), run(), [self](std::exception_ptr failure) {
    self->close();
    self->host_.forget(*self);
    self->failed_here(std::move(failure));
  });
}

std::uint64_t ServerSession::received_bytes() {
  return net::progress_of(stream().socket().native_handle()).received;
}

// Refused memory is for run_io().
void ServerSession::failed_here(std::exception_ptr failure) {
  const auto why = net::internal_failure(std::move(failure));
  if (why) host_.report(*why, requester_.address);
}

void ServerSession::close() {
  host_.thread.check();
  const bool closed = facts_.phase == ConnectionFacts::Phase::closing;
  stream().close();
  requests_.cancel();
  wake_.cancel();
  facts_.phase = ConnectionFacts::Phase::closing;
  if (closed) return;
  outgoing_.clear();
  for (const auto& handler : host_.handlers) handler->connection_closed(*this);
}

void ServerSession::protocol_error(const std::string& what) {
  ++local_.traffic.protocol_errors;
  host_.report(Failure(Failure::Kind::protocol, "connection closed: " + what), requester_.address);
}

void ServerSession::turned_away(const Failure& failure) {
  ++local_.traffic.connections_refused;
  if (failure.is_protocol()) ++local_.traffic.protocol_errors;
  if (failure.kind == Failure::Kind::security) ++local_.traffic.security_failures;
  host_.report(with_words(failure, "refused a caller: "), requester_.address);
}

asio::awaitable<void> ServerSession::run() {
  {
    const TimePoint until = std::chrono::steady_clock::now() + host_.options.handshake_timeout;
    const net::Deadline deadline(stream().get_executor(), until, [this] { close(); });
    auto failure = co_await net::secure_inbound(stream(), local_.security.get());
    if (failure && failure->detail.empty()) {
      ++local_.traffic.connections_refused;
      co_return;
    }
    if (failure) {
      if (deadline.expired()) {
        failure->detail = "did not finish its TLS handshake in time";
      } else if (facts_.phase == ConnectionFacts::Phase::closing) {
        failure->detail =
            "was closed before its TLS handshake ended, to make room for another connection";
      }
      turned_away(*failure);
      co_await stream().finish();
      co_return;
    }
    const bool admitted = co_await handshake();
    if (!admitted) {
      ++local_.traffic.connections_refused;
      co_return;
    }
  }
  enter(ConnectionFacts::Phase::idle);
  co_await serve_requests();
}

asio::awaitable<void> ServerSession::serve_requests() {
  std::vector<wire::TypeBound> expected;
  handlers_.assign(wire::TypeSet::numbers, nullptr);
  for (const auto& handler : host_.handlers) {
    for (const wire::TypeBound& bound : handler->requests(requester_)) {
      expected.push_back(bound);
      handlers_.at(static_cast<std::size_t>(bound.type)) = handler.get();
    }
  }
  const bool in_numbers =
      std::ranges::any_of(handlers_, [](const auto* each) { return each && each->in_numbers(); });
  if (in_numbers) connection_.incoming().read_ahead(net::Connection::store_ahead_bytes);
  const net::Expected requests{std::span<const wire::TypeBound>(expected)};
  while (!host_.stopping && stream().is_open()) {
    auto request = co_await connection_.receive(requests);
    if (!request) {
      if (request.error().is_protocol()) protocol_error(request.error().detail);
      co_return;
    }
    co_await requests_.wait();
    if (!stream().is_open()) co_return;  // handlers have forgotten the connection meanwhile
    net::Frame frame = std::move(*request);
    RequestHandler& handler = *handlers_.at(static_cast<std::size_t>(frame.header.type));
    const auto taken = handler.take_at_once(frame, *this);
    if (taken && !*taken) co_return;
    if (taken) continue;
    const bool answered = co_await handler.answer(std::move(frame), *this);
    if (!answered) co_return;
  }
}

asio::awaitable<bool> ServerSession::handshake() {
  const net::Expected expected(net::types(MessageType::hello));
  const auto frame = co_await connection_.receive(expected);
  if (!frame) {
    if (!frame.error().is_protocol()) co_return false;
    protocol_error(frame.error().detail);
    if (frame.error().kind == Failure::Kind::version) {
      wire::Reject reject{wire::RejectCode::version, frame.error().detail};
      co_await refuse(std::move(reject), 0);
    }
    co_return false;
  }
  const std::uint32_t request_id = frame->header.request_id;
  const auto hello = wire::decode_hello(frame->body);
  if (!hello) {
    protocol_error(hello.error().detail);
    co_return false;
  }
  const bool is_node = hello->role == wire::Role::node;
  if (is_node && !host_.options.admits_nodes) co_return false;
  // A call of this very process, turned around on its way: all that have the key look alike. The
  // caller would take an answer for the word of the node that it has called.
  if (is_node && hello->node == local_.name && hello->incarnation == local_.incarnation)
    co_return false;
  auto reject = examine_hello(*hello, local_);
  const auto names = stream().certified_names();
  if (!reject && is_node && !net::is_for(names, hello->node)) {
    reject = wire::Reject{wire::RejectCode::security, "the certificate of node '" + hello->node +
                                                          "' is for " + net::words_for(*names)};
  }
  if (reject && reject->code == wire::RejectCode::security) ++local_.traffic.security_failures;
  if (reject) {
    wire::Reject answer = std::move(*reject);
    co_return co_await refuse(std::move(answer), request_id);
  }
  requester_.peer = hello->node;
  requester_.incarnation = hello->incarnation;
  if (is_node) {
    const bool admitted = co_await bears_its_name(host_.name_guard, *this, request_id);
    if (!admitted) co_return false;
  }
  requester_.moves_parameters = is_node && hello->fingerprint != Fingerprint{};
  requester_.account = identify(*hello);
  facts_.peer = requester_.account.account;
  facts_.of_file = requester_.account.is_known && local_.members->is_listed(requester_.peer);
  if (!host_.introduce(*this, !is_node)) co_return false;
  if (requester_.moves_parameters && hello->fingerprint != host_.other_settings.stated()) {
    const bool admitted = co_await has_own_model(hello->fingerprint, request_id);
    if (!admitted) co_return false;
  }
  if (is_node) {
    local_.members->heard(requester_.peer, requester_.incarnation);
    host_.welcomed(requester_.peer, requester_.incarnation);
  }
  co_return co_await welcome(is_node, request_id);
}

asio::awaitable<bool> ServerSession::welcome(bool is_node, std::uint32_t request_id) {
  wire::Welcome welcome{local_.name, local_.incarnation, local_.capabilities(),
                        local_.state.load()};
  const Progress progress = local_.progress();
  welcome.clock = progress.clock;
  welcome.lineage = progress.lineage;
  if (is_node) welcome.same_host = host_.offer_to(stream().socket());
  requester_.may_map = !welcome.same_host.empty();
  auto encoded = wire::encode(welcome, request_id);
  co_return co_await send(std::move(encoded));
}

// A name alone proves nothing. A certificate proves it, and to some extent so does a call from the
// address in the file.
Caller ServerSession::identify(const wire::Hello& hello) const {
  const std::string& network = facts_.address;
  const bool is_node = hello.role == wire::Role::node;
  const std::string named = is_node ? hello.node : observers;
  if (is_node && stream().certified_names()) return Caller::known(named, network);
  const std::string account = named + " at " + network;
  const bool known = is_node && local_.members->is_listed_at(named, network);
  return known ? Caller::known(account, network) : Caller::stranger(account, network);
}

// Only one caller at a time, and no manifest far larger than the own, because each is held in
// memory.
asio::awaitable<bool> ServerSession::has_own_model(Fingerprint stated, std::uint32_t request_id) {
  constexpr std::uint64_t least = 4U << 20;
  if (warn_of_settings(stated)) co_return true;
  co_await host_.reading_manifest.take();
  const OnExit over([this] { host_.reading_manifest.give_back(); });
  if (!stream().is_open()) co_return false;
  if (warn_of_settings(stated)) co_return true;  // learnt from another caller meanwhile
  const std::uint64_t own = wire::encode(local_.manifest, request_id).size();
  auto request = wire::encode_empty(MessageType::manifest_request, request_id);
  const bool asked = co_await send(std::move(request));
  if (!asked) co_return false;
  const net::Expected expected(net::types(MessageType::manifest), std::max(least, 4 * own));
  const auto frame = co_await receive(expected);
  if (!frame) co_return false;
  const auto manifest = wire::decode_manifest(frame->body);
  if (!manifest) {
    protocol_error(manifest.error().detail);
    co_return false;
  }
  if (host_.other_settings.learn(*manifest) && warn_of_settings(stated)) co_return true;
  auto reject = model_reject(local_, requester_.peer, *manifest);
  co_return co_await refuse(std::move(reject), request_id);
}

// False: it is not known what this fingerprint stands for.
bool ServerSession::warn_of_settings(const Fingerprint& stated) {
  const auto lines = host_.other_settings.lines(requester_.peer, stated);
  if (!lines) return false;
  for (const std::string& line : *lines) log(LogLevel::warn, "rx", line);
  return true;
}

asio::awaitable<bool> ServerSession::refuse(wire::Reject reject, std::uint32_t request_id) {
  const std::string& peer = requester_.peer;
  const std::string who = peer.empty() ? std::string("a caller") : "'" + peer + "'";
  host_.report(with_words(reject, "refused " + who + ": "), requester_.address);
  auto frame = wire::encode(reject, request_id);
  co_await send(std::move(frame));
  co_return false;
}

asio::awaitable<bool> ServerSession::send(std::vector<std::byte> frame) {
  co_await writing_.take();
  const OnExit over([this] { writing_.give_back(); });
  const TimePoint until = std::chrono::steady_clock::now() + host_.options.max_reply_time;
  const net::Deadline deadline(stream().get_executor(), until, [this] { close(); });
  const auto broken = co_await stream().write_all(frame);
  co_return !broken;
}

asio::awaitable<void> ServerSession::begin_reply() {
  co_await writing_.take();
  enter(ConnectionFacts::Phase::replying);
}

asio::awaitable<bool> ServerSession::write(std::span<const asio::const_buffer> buffers) {
  const auto broken = co_await stream().write_all(buffers);
  co_return !broken;
}

asio::awaitable<std::optional<net::Frame>> ServerSession::receive(net::Expected expected) {
  auto frame = co_await connection_.receive(expected);
  std::optional<net::Frame> received;
  if (frame) {
    received = std::move(*frame);
  } else if (frame.error().is_protocol()) {
    protocol_error(frame.error().detail);
  }
  co_return received;
}

void ServerSession::begin_write() {
  wake_.cancel();
  if (std::exchange(writes_messages_, true)) return;
  auto self = shared_from_this();
  asio::co_spawn(stream().get_executor(), write_messages(), [self](std::exception_ptr failure) {
    self->close();
    self->failed_here(std::move(failure));
  });
}

asio::awaitable<void> ServerSession::write_messages() {
  net::WriteRules rules;
  rules.least_time = kvstore::write_time_of_server;
  rules.turns = &writing_;
  rules.staged = [this] { enter(ConnectionFacts::Phase::replying); };
  rules.after = [this](bool) { enter(ConnectionFacts::Phase::idle); };
  co_await net::write_waiting(stream(), outgoing_, wake_, rules);
}

void ServerSession::end_reply() {
  enter(ConnectionFacts::Phase::idle);
  writing_.give_back();
}

}  // namespace dpwa
