#include "dpwa/net/server.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <iterator>
#include <system_error>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/net/network.h"
#include "dpwa/net/same_host/listener.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/net/server_session.h"
#include "dpwa/net/socket_options.h"

namespace dpwa {

namespace asio = boost::asio;
using asio::ip::tcp;

Server::Server(asio::io_context& io, LocalNode& local, ServerOptions options, ServerEvents events)
    : io_(io),
      local_(local),
      options_(std::move(options)),
      events_(std::move(events)),
      accepts_(
          io, [this](tcp::socket socket) { admit(std::move(socket)); },
          [this](const std::string& error) { report(CallerFault::accept, "accept", error); }),
      drain_(io),
      readers_(options_.max_replies),
      name_guard_(local) {}

Server::~Server() = default;

std::uint16_t Server::listen() {
  const tcp::endpoint endpoint(asio::ip::make_address(options_.bind_address), options_.port);
  tcp::acceptor& acceptor = accepts_.acceptor();
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
    throw std::system_error(error, "node '" + local_.name + "' cannot listen on " +
                                       options_.bind_address + " port " +
                                       std::to_string(options_.port));
  }
  if (options_.same_host && local_.store.shareable()) {
    same_host_ = std::make_unique<same_host::Listener>(
        io_, local_, options_, events_, readers_,
        [this](CallerFault fault, const std::string& address, const std::string& what) {
          report(fault, address, what);
        });
    if (!same_host_->listen()) same_host_.reset();
  }
  return acceptor.local_endpoint().port();
}

std::string Server::offer_to(const tcp::socket& caller) const {
  return same_host_ && same_host::is_local(caller) ? same_host_->offer() : std::string();
}

void Server::serve() {
  if (same_host_) same_host_->serve();
  accepts_.run();
}

void Server::allow_replies(Duration max_time, Duration max_full_time) {
  options_.max_reply_time = max_time;
  options_.max_full_reply_time = max_full_time;
}

void Server::admit(tcp::socket socket) {
  boost::system::error_code gone;
  const auto remote = socket.remote_endpoint(gone);
  if (gone) return;
  const std::string address = net::text_of(remote.address());
  const auto verdict =
      examine_connection(connections(), net::network_of(address), options_.connections);
  if (!verdict.reason.empty()) {
    ++local_.traffic.connections_refused;
    report(CallerFault::limit, "accept " + address, verdict.reason);
  }
  if (!verdict.admitted) return;  // the socket closes here
  if (verdict.closes) make_room(*verdict.closes);
  ++local_.traffic.connections_accepted;
  net::tune(socket, options_.congestion_control);
  sessions_.push_back(std::make_shared<ServerSession>(std::move(socket), *this));
  try {
    sessions_.back()->start();
  } catch (...) {  // it would hold its place for good
    sessions_.pop_back();
    throw;
  }
}

bool Server::introduce(const ServerSession& session, bool is_observer) {
  const auto self = std::find_if(sessions_.begin(), sessions_.end(),
                                 [&](const auto& held) { return held.get() == &session; });
  const auto index = static_cast<std::size_t>(std::distance(sessions_.begin(), self));
  ConnectionLimits limits = options_.connections;
  if (is_observer) limits.per_peer *= 4;
  const std::string& peer = session.facts().peer;
  const auto verdict = examine_introduction(connections(), index, peer, limits);
  if (!verdict.reason.empty()) report(CallerFault::limit, "'" + peer + "'", verdict.reason);
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
  if (stopping_) return;
  stopping_ = true;
  if (same_host_) same_host_->stop();
  accepts_.stop();
  bool draining = false;
  for (const auto& session : sessions_) {
    if (session->replying()) {
      draining = true;
    } else {
      session->close();
    }
  }
  if (!draining) return;
  drain_.expires_after(options_.drain_time);
  drain_.async_wait([this](const boost::system::error_code&) {
    for (const auto& session : sessions_) session->close();
  });
}

void Server::report(CallerFault fault, const std::string& address, const std::string& what) {
  const std::string key = std::to_string(static_cast<int>(fault)) + ' ' + address;
  const auto held_back = limiter_.pass(key, std::chrono::steady_clock::now());
  if (held_back) log(LogLevel::warn, "rx", address + ": " + what + since_words(*held_back));
}

}  // namespace dpwa
