#include "dpwa/net/server.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <iterator>
#include <system_error>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/net/drain.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/network.h"
#include "dpwa/net/node_handlers.h"
#include "dpwa/net/same_host/memory_server.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/net/snapshot_handler.h"
#include "dpwa/net/stream.h"

namespace dpwa {

namespace asio = boost::asio;
using asio::ip::tcp;

Server::Server(asio::io_context& io, LocalProcess& node, ServerOptions server_options,
               OnContact on_contact)
    : ServerSessionHost(io.get_executor(), node, std::move(server_options)),
      io_(io),
      on_contact_(on_contact ? std::move(on_contact) : [](const std::string&, std::uint64_t) {}),
      accepts_(
          io, [this](tcp::socket socket) { admit(std::move(socket)); },
          [this](const std::string& error) {
            report(net::Failure(net::Failure::Kind::accept, error), "accept");
          }),
      drain_(io),
      readers_(options.max_replies) {
  handlers.push_back(std::make_unique<MembersHandler>(local, name_guard, on_contact_));
}

Server::~Server() = default;

void Server::serve_snapshots(LocalNode& node) {
  handlers.push_back(std::make_unique<SnapshotHandler>(node, options, readers_));
  if (!options.same_host || node.store.files().empty()) return;
  same_host::MemoryServer::Terms terms;
  terms.subsystem = "rx";
  terms.callers = "peers";
  terms.most_connections = options.connections.in_all;
  terms.handshake_time = options.handshake_timeout;
  terms.report = [this](const net::Failure& failure, const std::string& address) {
    report(failure, address);
  };
  terms.begins = [&store = node.store](const auto&, const auto& exchange) {
    std::uint32_t number = 0;
    for (const MemoryFile* file : store.files()) exchange->share(number++, *file);
  };
  memory_ = std::make_unique<same_host::MemoryServer>(io_, node, std::move(terms));
}

void Server::add(std::unique_ptr<RequestHandler> handler) {
  handlers.push_back(std::move(handler));
}

void Server::welcomed(const std::string& peer, std::uint64_t incarnation) {
  on_contact_(peer, incarnation);
}

std::uint16_t Server::listen() {
  const tcp::endpoint endpoint(asio::ip::make_address(options.bind_address), options.port);
  if (const boost::system::error_code error = accepts_.listen(endpoint)) {
    throw std::system_error(error, "node '" + local.name + "' cannot listen on " +
                                       options.bind_address + " port " +
                                       std::to_string(options.port));
  }
  if (memory_ && !memory_->listen()) memory_.reset();
  return accepts_.acceptor().local_endpoint().port();
}

std::string Server::offer_to(const tcp::socket& caller) const {
  if (!same_host::is_local(caller)) return {};
  return memory_ ? memory_->offer() : other_offer_;
}

void Server::serve() {
  if (memory_) memory_->serve();
  accepts_.run();
}

void Server::allow_replies(Duration max_time, Duration max_full_time) {
  thread.check();
  options.max_reply_time = max_time;
  options.max_full_reply_time = max_full_time;
}

void Server::admit(tcp::socket socket) {
  thread.check();
  boost::system::error_code gone;
  const auto remote = socket.remote_endpoint(gone);
  if (gone) return;
  const std::string address = net::text_of(remote.address());
  const auto verdict =
      examine_connection(connections(), net::network_of(address), options.connections);
  if (!verdict.reason.empty()) {
    ++local.traffic.connections_refused;
    report(net::Failure(net::Failure::Kind::limit, verdict.reason), "accept " + address);
  }
  if (!verdict.admitted) return;  // the socket closes here
  if (verdict.closes) make_room(*verdict.closes);
  ++local.traffic.connections_accepted;
  net::tune(socket);
  ServerSessionHost& host = *this;
  sessions_.push_back(std::make_shared<ServerSession>(std::move(socket), host));
  sessions_.back()->start();
}

bool Server::introduce(const ServerSession& session, bool is_observer) {
  const auto self = std::find_if(sessions_.begin(), sessions_.end(),
                                 [&](const auto& held) { return held.get() == &session; });
  const auto index = static_cast<std::size_t>(std::distance(sessions_.begin(), self));
  ConnectionLimits limits = options.connections;
  if (is_observer) limits.per_peer *= 4;
  const std::string& peer = session.facts().peer;
  const auto verdict = examine_introduction(connections(), index, peer, limits);
  if (!verdict.reason.empty())
    report(net::Failure(net::Failure::Kind::limit, verdict.reason), "'" + peer + "'");
  if (verdict.closes) make_room(*verdict.closes);
  return verdict.admitted;
}

std::vector<ConnectionFacts> Server::connections() const {
  std::vector<ConnectionFacts> facts;
  for (const auto& session : sessions_) facts.push_back(session->facts());
  return facts;
}

// The session is forgotten once its coroutine has ended.
void Server::make_room(std::size_t index) {
  (*std::next(sessions_.begin(), static_cast<std::ptrdiff_t>(index)))->close();
}

void Server::forget(ServerSession& session) {
  sessions_.remove_if([&](const auto& held) { return held.get() == &session; });
}

void Server::stop() {
  thread.check();
  if (stopping) return;
  stopping = true;
  if (memory_) memory_->stop();
  accepts_.stop();
  net::drain(sessions_, drain_, options.drain_time,
             [](const ServerSession& session) { return session.replying(); });
}

void Server::report(const net::Failure& failure, const std::string& address) {
  log(limiter_, net::log_key(failure) + ' ' + address, LogLevel::warn, "rx",
      address + ": " + failure.detail);
}

}  // namespace dpwa
