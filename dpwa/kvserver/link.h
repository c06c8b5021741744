#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>

#include "dpwa/kvstore/epoch.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/log/log.h"
#include "dpwa/net/store_link.h"

namespace dpwa::kvserver {

// The connection of a server to another one. It carries only the messages of this end; the other
// server sends over a connection that it makes itself. Messages are dropped while there is no
// connection, because the engines send again what matters. I/O thread only, but for start() before
// it runs; outlives the run of its io_context.
class Link final : public net::StoreLink {
 public:
  // `lost`: called when that process of the server has ended.
  Link(boost::asio::io_context& io, LocalProcess& local, PeerAddress server,
       std::function<void(const kvstore::MemberId& server)> lost);

  void send(kvstore::Message message);
  // This process is to end, and the other one probably too: that is no failure.
  void expect_end() { expects_end_ = true; }

 private:
  void connected(const wire::Welcome& welcome) override;
  // No message is accepted.
  std::optional<net::Failure> received(net::Frame) override { return std::nullopt; }
  void failed(const net::Failure& failure, LogLevel level, bool was_connected) override;
  void disconnected() override { outgoing_.clear(); }
  void not_reached(const net::Failure& failure, LogLevel level);

  const std::function<void(const kvstore::MemberId& server)> lost_;
  std::uint64_t incarnation_ = 0;  // of the other server, on the last connection; 0: none yet
  bool expects_end_ = false;
  LogLimiter limiter_;
};

}  // namespace dpwa::kvserver
