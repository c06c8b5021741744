#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/kvstore/messages.h"
#include "dpwa/log/log.h"
#include "dpwa/net/connection.h"
#include "dpwa/net/failure.h"
#include "dpwa/net/io_thread.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/socket_progress.h"
#include "dpwa/net/start_grace.h"
#include "dpwa/session/outgoing.h"

namespace dpwa::net {

// The connection that a process keeps to another one for its own messages: to a server of the
// store, or to a process of its group. Connects until the other one answers, and again after each
// failure, with back-off. What it means is decided by derived classes, which it calls on the I/O
// thread. I/O thread only, but for start() before it runs; held as a shared_ptr.
class StoreLink : public std::enable_shared_from_this<StoreLink> {
 public:
  void start();
  void stop();

  const std::string& name() const { return options_.server.name; }
  bool is_connected() const { return connected_; }

 protected:
  struct Options {
    PeerAddress server;
    std::vector<wire::TypeBound> accepted{};
    Duration write_time{};  // as WriteRules::least_time
    // The first time after the end of a connection that has lasted without a pause: a process that
    // has ended refuses that, or its successor has another incarnation.
    bool redials_at_once = false;
  };
  StoreLink(boost::asio::io_context& io, LocalProcess& local, Options options);
  ~StoreLink() = default;

  // The server has answered the greeting of a new connection.
  virtual void connected(const wire::Welcome& welcome) = 0;
  // A message of one of the types that are accepted. A failure ends the connection.
  virtual std::optional<Failure> received(Frame frame) = 0;
  // There was no connection, or it has ended. `level`: for the log.
  virtual void failed(const Failure& failure, LogLevel level, bool was_connected) = 0;
  // After failed(), once nothing is written any more: before it connects again.
  virtual void disconnected() = 0;
  // As Incoming::Target, and as WriteRules.
  virtual std::span<std::byte> target_of(wire::MessageType, std::span<const std::byte>,
                                         std::uint64_t) {
    return {};
  }
  virtual void before_staging() {}
  virtual std::optional<kvstore::Message> form_of(const kvstore::Message&) { return std::nullopt; }
  virtual void staged() {}
  virtual void after_write(bool) {}
  virtual void write_is_late(std::size_t, Duration) {}

  void close();  // ends this connection
  void reconnect_as(LocalProcess& local);
  void wake() { wake_.cancel(); }   // there is something to write
  SocketProgress progress() const;  // zeros while there is no connection
  bool is_stopped() const { return stopped_; }
  LocalProcess& local() { return *local_; }

  IoThread thread_;
  boost::asio::io_context& io_;
  session::Outgoing outgoing_;  // what waits is kept when the connection ends

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<IoResult<wire::Welcome>> connect(Connection& connection);
  boost::asio::awaitable<Failure> converse(std::shared_ptr<Connection> connection);
  boost::asio::awaitable<void> write(std::shared_ptr<Connection> connection);

  LocalProcess* local_;
  const Options options_;
  std::shared_ptr<Connection> connection_;  // the last one
  boost::asio::steady_timer wake_;          // there is more to write
  boost::asio::steady_timer again_;         // the time to connect again
  boost::asio::steady_timer over_;          // nothing is written any more
  bool connected_ = false;
  bool writing_ = false;
  bool stopped_ = false;
  Random random_;
  StartGrace grace_;
};

}  // namespace dpwa::net
