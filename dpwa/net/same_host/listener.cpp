#include "dpwa/net/same_host/listener.h"

#include <utility>

#include "dpwa/ipc/unix_socket.h"
#include "dpwa/net/drain.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/net/same_host/session.h"

namespace dpwa::same_host {

namespace asio = boost::asio;

Listener::Listener(asio::io_context& io, LocalNode& node, const ServerOptions& server_options,
                   Readers& server_readers, Report report)
    : SessionHost(node, server_options, server_readers),
      report_(std::move(report)),
      accepts_(
          io, [this](Socket socket) { admit(std::move(socket)); },
          [this](const std::string& error) {
            report_({net::Failure::Kind::accept, error}, "same host");
          }),
      drain_(io) {}

Listener::~Listener() = default;

bool Listener::listen() {
  offer_ = offer_socket(accepts_.acceptor(), "rx", "peers");
  return !offer_.empty();
}

void Listener::serve() {
  accepts_.run();
}

void Listener::admit(Socket socket) {
  thread.check();
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
  thread.check();
  stopping = true;
  if (accepts_.acceptor().is_open()) ipc::stop_listening(accepts_.acceptor().native_handle());
  accepts_.stop();
  net::drain(sessions_, drain_, options.drain_time,
             [](const Session& session) { return session.lending(); });
}

}  // namespace dpwa::same_host
