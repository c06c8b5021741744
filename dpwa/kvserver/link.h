#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/kvserver/outbox.h"
#include "dpwa/kvstore/epoch.h"
#include "dpwa/log/log.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/start_grace.h"
#include "dpwa/net/stream.h"

namespace dpwa::kvserver {

// The connection that a process of the store keeps to a server. Between servers it carries only the
// messages of this end; the other server sends over a connection that it makes itself. Connects
// again when the connection breaks. Messages are dropped while there is no connection, because the
// engines send again what matters. I/O thread only, but for start() before it runs.
class Link : public std::enable_shared_from_this<Link> {
 public:
  struct Events {
    std::function<void(const kvstore::MemberId& server)> lost;  // the process has ended
    // A message of one of the types in `accepted` has come.
    std::function<void(const kvstore::MemberId& server, std::uint64_t tag,
                       kvstore::Message message)>
        received{};
    std::vector<wire::TypeBound> accepted{};
  };
  Link(boost::asio::io_context& io, LocalProcess& local, PeerAddress address,
       std::string congestion_control, Events events);

  void start();
  void send(kvstore::Message message, std::uint64_t tag = 0);
  void stop();
  // This process is to end, and the other one probably too: that is no failure.
  void expect_end() { expects_end_ = true; }
  bool is_open() const { return connected_; }

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<bool> connect();
  boost::asio::awaitable<void> write();
  boost::asio::awaitable<void> read();
  void hang_up();
  void protocol_error(const std::string& what);
  void not_reached(const net::Failure& failure);

  net::IoThread thread_;
  LocalProcess& local_;
  const PeerAddress address_;
  const std::string congestion_control_;
  const Events events_;
  net::Stream stream_;
  boost::asio::steady_timer wake_;  // there is something to write, or the link is to end
  Outbox outbox_;
  std::uint64_t incarnation_ = 0;  // of the other server, on the last connection; 0: none yet
  bool connected_ = false;
  std::uint64_t connections_ = 0;  // so far
  bool stopped_ = false;
  bool expects_end_ = false;
  LogLimiter limiter_;
  net::StartGrace grace_;
};

}  // namespace dpwa::kvserver
