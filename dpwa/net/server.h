#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/log/log_limiter.h"
#include "dpwa/net/accept_loop.h"
#include "dpwa/net/caller_fault.h"
#include "dpwa/net/connection_limits.h"
#include "dpwa/net/local_node.h"
#include "dpwa/net/name_guard.h"
#include "dpwa/net/served_for.h"
#include "dpwa/net/staging_pool.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/readers.h"

namespace dpwa {

struct ServerOptions : ServingOptions {
  std::string bind_address = "127.0.0.1";  // numeric
  std::uint16_t port = 0;                  // 0 = any free port
  Duration handshake_timeout = std::chrono::seconds(5);
  // Bounds of the deadline that a caller may state, of ordinary and of full pulls.
  Duration max_reply_time = std::chrono::seconds(10);
  Duration max_full_reply_time = std::chrono::seconds(10);
  Duration longest_reply(bool full) const { return full ? max_full_reply_time : max_reply_time; }
  Duration drain_time = std::chrono::milliseconds(300);  // for replies in flight at stop
};

// What the server tells the node. Called on the Rx thread; must not block.
struct ServerEvents {
  std::function<void(const std::string& peer, std::uint64_t incarnation)> on_contact;
  // Not for callers that borrow the name of a node of the file from elsewhere.
  std::function<void(const std::string& peer, const Progress& progress, ServedFor use)> on_served;
  std::function<boost::asio::awaitable<std::string>()> status_json;
};

class ServerSession;
namespace same_host {
class Listener;
}

// The Rx side: accepts connections and serves this node's latest snapshot, one coroutine per
// connection, each reply straight from the snapshot's memory or encoded chunk by chunk. A slow
// reader holds its own coroutine and one snapshot buffer until the deadline that it stated, and
// delays nobody. Lives on one io_context run by one thread; listen() before that thread starts,
// stop() from it.
class Server {
 public:
  Server(boost::asio::io_context& io, LocalNode& local, ServerOptions options, ServerEvents events);
  ~Server();

  // Binds and listens; returns the port. Throws std::system_error that names address, port and
  // cause; may be called again then.
  std::uint16_t listen();
  // Begins to accept; later, on the Rx thread: accepts again where a handler was lost because
  // memory was refused. Throws std::bad_alloc when it is refused again.
  void serve();
  // Rx thread: for replies from now on, of ordinary and of full pulls (ServerOptions).
  void allow_replies(Duration max_time, Duration max_full_time);
  void stop();  // Rx thread: no new connections; replies in flight get drain_time, idle ones none

 private:
  friend class ServerSession;
  void admit(boost::asio::ip::tcp::socket socket);
  // The caller of `session` has said who it is. False: it has too many connections already.
  bool introduce(const ServerSession& session, bool is_observer);
  std::vector<ConnectionFacts> connections() const;  // in the order of sessions_
  void make_room(std::size_t index);
  void forget(ServerSession& session);
  // Where the caller on this connection can have snapshots as memory; empty = nowhere.
  std::string offer_to(const boost::asio::ip::tcp::socket& caller) const;
  // Warns, once a minute for each fault and address.
  void report(CallerFault fault, const std::string& address, const std::string& what);

  boost::asio::io_context& io_;
  LocalNode& local_;
  ServerOptions options_;
  const ServerEvents events_;
  net::AcceptLoop<boost::asio::ip::tcp> accepts_;
  boost::asio::steady_timer drain_;
  StagingPool staging_;  // outlives the sessions
  std::list<std::shared_ptr<ServerSession>> sessions_;
  std::unique_ptr<same_host::Listener> same_host_;  // null: not offered
  Readers readers_;                                 // over TCP and of memory together
  NameGuard name_guard_;
  bool explains_model_ = false;  // to a caller with another: one at a time
  bool stopping_ = false;
  LogLimiter limiter_;
};

}  // namespace dpwa
