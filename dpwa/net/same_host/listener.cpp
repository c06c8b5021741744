#include "dpwa/net/same_host/listener.h"

#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/net/same_host/credentials.h"
#include "dpwa/net/same_host/descriptors.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/net/same_host/session.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using asio::local::stream_protocol;

namespace {
constexpr auto accept_pause = std::chrono::milliseconds(100);  // e.g. out of descriptors
}

Listener::Listener(asio::io_context& io, LocalNode& local, const ServerOptions& options,
                   const ServerEvents& events, Readers& readers, Report report)
    : local_(local),
      options_(options),
      events_(events),
      readers_(readers),
      report_(std::move(report)),
      acceptor_(io),
      timer_(io) {}

Listener::~Listener() = default;

bool Listener::listen() {
  const Offer offer{boot_id(), unique_socket_name()};
  if (offer.boot_id.empty()) return false;
  boost::system::error_code error;
  const stream_protocol::endpoint endpoint(std::string(1, '\0') + offer.socket);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    log(LogLevel::debug, "rx", "no Unix socket for peers of this host: " + error.message());
    return false;
  }
  offer_ = to_text(offer);
  return true;
}

void Listener::serve() {
  accept_next();
}

void Listener::resume() {
  if (!accepting_ && !stopping_) accept_next();
}

void Listener::accept_next() {
  acceptor_.async_accept([this](const boost::system::error_code& error, Socket socket) {
    accepting_ = false;
    if (stopping_ || error == asio::error::operation_aborted) return;
    if (!error) {
      admit(std::move(socket));
      accept_next();
      return;
    }
    report_("same host", error.message());
    timer_.expires_after(accept_pause);
    timer_.async_wait([this](const boost::system::error_code& cancelled) {
      accepting_ = false;
      if (!cancelled && !stopping_) accept_next();
    });
    accepting_ = true;
  });
  accepting_ = true;
}

void Listener::admit(Socket socket) {
  const bool full = sessions_.size() >= options_.connections.in_all;
  if (full || !is_same_user(socket.native_handle())) {
    ++local_.traffic.connections_refused;
    report_("same host", full ? "more connections than transport.max_connections"
                              : "refused a process of another user");
    discard_received(socket.native_handle());
    return;  // the socket closes here
  }
  ++local_.traffic.connections_accepted;
  sessions_.push_back(std::make_shared<Session>(std::move(socket), *this));
  sessions_.back()->start();
}

void Listener::forget(Session& session) {
  sessions_.remove_if([&](const auto& held) { return held.get() == &session; });
  if (stopping_ && sessions_.empty()) timer_.cancel();  // nothing is left to wait for
}

void Listener::stop() {
  stopping_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  timer_.cancel();
  bool draining = false;
  for (const auto& session : sessions_) {
    if (session->lending()) {
      draining = true;
    } else {
      session->close();
    }
  }
  if (!draining) return;
  timer_.expires_after(options_.drain_time);
  timer_.async_wait([this](const boost::system::error_code&) {
    for (const auto& session : sessions_) session->close();
  });
}

}  // namespace dpwa::same_host
