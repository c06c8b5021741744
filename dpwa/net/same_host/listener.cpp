#include "dpwa/net/same_host/listener.h"

#include <utility>

#include "dpwa/base/credentials.h"
#include "dpwa/log/log.h"
#include "dpwa/net/same_host/descriptors.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/net/same_host/session.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using asio::local::stream_protocol;

Listener::Listener(asio::io_context& io, LocalNode& local, const ServerOptions& options,
                   const ServerEvents& events, Readers& readers, Report report)
    : local_(local),
      options_(options),
      events_(events),
      readers_(readers),
      report_(std::move(report)),
      accepts_(
          io, [this](Socket socket) { admit(std::move(socket)); },
          [this](const std::string& error) { report_(CallerFault::accept, "same host", error); }),
      drain_(io) {}

Listener::~Listener() = default;

bool Listener::listen() {
  const Offer offer{boot_id(), unique_socket_name()};
  if (offer.boot_id.empty()) return false;
  boost::system::error_code error;
  const stream_protocol::endpoint endpoint(std::string(1, '\0') + offer.socket);
  stream_protocol::acceptor& acceptor = accepts_.acceptor();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    log(LogLevel::debug, "rx", "no Unix socket for peers of this host: " + error.message());
    return false;
  }
  offer_ = to_text(offer);
  return true;
}

void Listener::serve() {
  accepts_.run();
}

void Listener::admit(Socket socket) {
  const bool full = sessions_.size() >= options_.connections.in_all;
  if (full || !is_same_user(socket.native_handle())) {
    ++local_.traffic.connections_refused;
    report_(full ? CallerFault::limit : CallerFault::user, "same host",
            full ? "more connections than transport.max_connections"
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
  if (stopping_ && sessions_.empty()) drain_.cancel();  // nothing is left to wait for
}

void Listener::stop() {
  stopping_ = true;
  accepts_.stop();
  bool draining = false;
  for (const auto& session : sessions_) {
    if (session->lending()) {
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

}  // namespace dpwa::same_host
