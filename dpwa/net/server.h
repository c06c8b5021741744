#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/log/log.h"
#include "dpwa/net/accept_loop.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/server_options.h"
#include "dpwa/net/server_session.h"
#include "dpwa/rules/readers.h"

namespace dpwa {

struct LocalNode;

namespace same_host {
class MemoryServer;
}

// The Rx side: accepts connections, one coroutine per connection, and has their requests answered
// by handlers: of members, and those added. Lives on one io_context run by one thread; listen()
// before that thread starts, stop() from it.
class Server : private ServerSessionHost {
 public:
  Server(boost::asio::io_context& io, LocalProcess& local, ServerOptions options,
         OnContact on_contact);
  ~Server();

  // Serves the snapshots of the same process, over TCP and, where ServerOptions::same_host allows
  // it, as memory of this host. Before listen().
  void serve_snapshots(LocalNode& node);
  // Serves more message types. Before serve().
  void add(std::unique_ptr<RequestHandler> handler);
  // Where peers of this host find memory, in WELCOME: of another owner than this. Before serve().
  void offer_memory(std::string offer) { other_offer_ = std::move(offer); }
  // Binds and listens; returns the port. Throws std::system_error that names address, port and
  // cause; may be called again then.
  std::uint16_t listen();
  void serve();  // begins to accept
  // Rx thread: for replies from now on, of ordinary and of full pulls (ServerOptions).
  void allow_replies(Duration max_time, Duration max_full_time);
  void stop();  // Rx thread: no new connections; replies in flight get drain_time, idle ones none

 private:
  void admit(boost::asio::ip::tcp::socket socket);
  std::vector<ConnectionFacts> connections() const;  // in the order of sessions_
  void make_room(std::size_t index);
  // As ServerSessionHost has them.
  bool introduce(const ServerSession& session, bool is_observer) override;
  void welcomed(const std::string& peer, std::uint64_t incarnation) override;
  void forget(ServerSession& session) override;
  std::string offer_to(const boost::asio::ip::tcp::socket& caller) const override;
  void report(const net::Failure& failure, const std::string& address) override;

  boost::asio::io_context& io_;
  const OnContact on_contact_;
  net::AcceptLoop<boost::asio::ip::tcp> accepts_;
  boost::asio::steady_timer drain_;
  std::list<std::shared_ptr<ServerSession>> sessions_;
  std::unique_ptr<same_host::MemoryServer> memory_;  // of the snapshots; null: not offered
  std::string other_offer_;
  Readers readers_;  // over TCP and of memory together
  LogLimiter limiter_;
};

}  // namespace dpwa
