#include "dpwa/net/same_host/listener.h"

#include <stdexcept>
#include <utility>

#include "dpwa/ipc/unix_socket.h"
#include "dpwa/log/log.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/net/same_host/session.h"

namespace dpwa::same_host {

namespace asio = boost::asio;
using asio::local::stream_protocol;

Listener::Listener(asio::io_context& io, LocalNode& node, const ServerOptions& server_options,
                   const ServerEvents& server_events, Readers& server_readers, Report report)
    : SessionHost(node, server_options, server_events, server_readers),
      report_(std::move(report)),
      accepts_(
          io, [this](Socket socket) { admit(std::move(socket)); },
          [this](const std::string& error) {
            report_({net::Failure::Kind::accept, error}, "same host");
          }),
      drain_(io) {}

Listener::~Listener() = default;

bool Listener::listen() {
  const Offer offer{boot_id(), unique_socket_name()};
  if (offer.boot_id.empty()) return false;
  try {
    FileDescriptor listener = ipc::listen_at(offer.socket);
    accepts_.acceptor().assign(stream_protocol(), listener.get());
    listener.release();
  } catch (const std::runtime_error& error) {
    log(LogLevel::debug, "rx",
        std::string("no Unix socket for peers of this host: ") + error.what());
    return false;
  }
  offer_ = to_text(offer);
  return true;
}

void Listener::serve() {
  accepts_.run();
}

void Listener::admit(Socket socket) {
  const bool ours = ipc::admits(socket.native_handle());
  if (!ours || sessions_.size() >= options.connections.in_all) {
    ++local.traffic.connections_refused;
    const net::Failure failure(ours ? net::Failure::Kind::limit : net::Failure::Kind::user,
                               ours ? "more connections than transport.max_connections"
                                    : "refused a process of another user");
    report(failure, "same host");
    return;  // the socket closes here
  }
  ++local.traffic.connections_accepted;
  SessionHost& host = *this;
  sessions_.push_back(std::make_shared<Session>(std::move(socket), host));
  sessions_.back()->start();
}

void Listener::forget(Session& session) {
  sessions_.remove_if([&](const auto& held) { return held.get() == &session; });
  if (stopping && sessions_.empty()) drain_.cancel();  // nothing is left to wait for
}

void Listener::report(const net::Failure& failure, const std::string& address) {
  report_(failure, address);
}

void Listener::stop() {
  stopping = true;
  if (accepts_.acceptor().is_open()) ipc::stop_listening(accepts_.acceptor().native_handle());
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
  drain_.expires_after(options.drain_time);
  drain_.async_wait([this](const boost::system::error_code&) {
    for (const auto& session : sessions_) session->close();
  });
}

}  // namespace dpwa::same_host
